// Draws the curves on logarithmic axes, in the style of the page of `ccmcp view --web`.
const COLUMNS = 4
const CELL = { width: 240, height: 200, gap: 12 }
/** Where the curves are, in a cell; at least three decades high. */
const PLOT = { left: 16, top: 46, width: 146, height: 138, decades: { x: 2, y: 3 } }
const SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
const THEMES = {
  light: {
    background: '#ffffff',
    panel: '#f7f8fa',
    line: '#e3e6ea',
    text: '#1c2128',
    muted: '#626b77',
    ccmcp: '#2360d8',
    sdk: '#c77d0a',
    bare: '#8a94a3',
  },
  dark: {
    background: '#14161a',
    panel: '#1a1d22',
    line: '#2d323a',
    text: '#dfe3e8',
    muted: '#8f99a6',
    ccmcp: '#7aa7ff',
    sdk: '#e3b341',
    bare: '#8f99a6',
  },
}
const NAMES = { ccmcp: 'ccmcp', sdk: 'official SDK v2', bare: 'JSON.parse and JSON.stringify' }

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
const round = (value) => Math.round(value * 10) / 10

export function duration(milliseconds) {
  if (milliseconds >= 1000) return `${(milliseconds / 1000).toPrecision(2)} s`
  if (milliseconds >= 99.5) return `${Math.round(milliseconds)} ms`
  if (milliseconds >= 0.095) return `${milliseconds.toPrecision(2)} ms`
  return `${Math.round(milliseconds * 1000)} µs`
}

/** `results`: for each curve, for each subject, `points` of `n` and `time`, and the fitted `exponent`. */
export function draw(results, theme) {
  const colors = THEMES[theme]
  const names = Object.keys(results)
  const rows = Math.ceil(names.length / COLUMNS)
  const width = COLUMNS * (CELL.width + CELL.gap) + CELL.gap
  const height = 44 + rows * (CELL.height + CELL.gap)
  const cells = names.map((name, index) => {
    const x = CELL.gap + (index % COLUMNS) * (CELL.width + CELL.gap)
    const y = 44 + Math.floor(index / COLUMNS) * (CELL.height + CELL.gap)
    return `<g transform="translate(${x} ${y})">${cell(name, results[name], colors)}</g>`
  })
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="${SANS}" font-size="12" role="img">`,
    `<title>Cost by amount of work, on logarithmic axes</title>`,
    `<rect width="${width}" height="${height}" fill="${colors.background}"/>`,
    legend(colors),
    ...cells,
    '</svg>\n',
  ].join('\n')
}

function legend(colors) {
  const parts = Object.entries(NAMES).map(([subject, name], index) => {
    const x = CELL.gap + [0, 90, 230][index]
    return `<path d="M${x} 22h20" ${strokeOf(subject, colors)}/><text x="${x + 26}" y="26" fill="${colors.text}">${name}</text>`
  })
  const note = 'left to right n = 100 to 10,000; the thin line is linear growth'
  const x = COLUMNS * (CELL.width + CELL.gap)
  return `${parts.join('')}<text x="${x}" y="26" text-anchor="end" fill="${colors.muted}">${note}</text>`
}

const strokeOf = (subject, colors) =>
  `fill="none" stroke="${colors[subject]}" stroke-width="2"${subject === 'bare' ? ' stroke-dasharray="4 3"' : ''}`

function cell(name, subjects, colors) {
  const { left, top, width, height, decades } = PLOT
  const times = Object.values(subjects).flatMap(({ points }) => points.map(({ time }) => time))
  const base = Math.log10(Math.min(...times)) - 0.1
  const span = Math.max(decades.y, Math.log10(Math.max(...times)) - base)
  const bottom = top + height
  const xOf = (n) => round(left + (width / decades.x) * (Math.log10(n) - 2))
  const yOf = (time) => round(bottom - (height / span) * (Math.log10(time) - base))
  const right = xOf(10 ** (2 + decades.x))
  const parts = [
    `<rect width="${CELL.width}" height="${CELL.height}" rx="6" fill="${colors.panel}" stroke="${colors.line}"/>`,
    `<text x="12" y="24" fill="${colors.text}" font-weight="600">${escaped(name)}</text>`,
    `<path d="M${left} ${bottom + 4}H${right}" stroke="${colors.line}"/>`,
  ]
  const first = subjects.ccmcp.points[0]
  const end = 10 ** (2 + decades.x)
  const linear = [first.n, end].map((n) => `${xOf(n)} ${yOf((first.time * n) / first.n)}`)
  parts.push(`<path d="M${linear.join('L')}" stroke="${colors.muted}" stroke-width="0.7"/>`)
  const labels = []
  for (const [subject, { points, exponent }] of Object.entries(subjects)) {
    const path = points.map(({ n, time }) => `${xOf(n)} ${yOf(time)}`).join('L')
    parts.push(`<path d="M${path}" ${strokeOf(subject, colors)}/>`)
    const last = points.at(-1)
    labels.push({
      subject,
      y: yOf(last.time) + 4,
      text: `${duration(last.time)}, ${exponent.toFixed(2)}`,
    })
  }
  labels.sort((one, other) => one.y - other.y)
  let free = 0
  for (const { subject, y, text } of labels) {
    free = Math.max(y, free)
    parts.push(
      `<text x="${right + 6}" y="${round(free)}" fill="${colors[subject]}" font-size="10.5">${text}</text>`,
    )
    free += 13
  }
  return parts.join('')
}

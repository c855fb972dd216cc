// Draws the pictures of README.md from the output of "ccmcp demo", after a build:
//   node scripts/demo-picture.mjs [--folder docs] [--sections 2,5,6]
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const { values } = parseArgs({
  options: {
    folder: { type: 'string', default: join(root, 'docs') },
    sections: { type: 'string', default: '2,5,6' },
  },
})

const THEMES = {
  light: {
    background: '#ffffff',
    border: '#d1d9e0',
    text: '#1f2328',
    styles: {
      1: '#1f2328',
      2: '#6e7781',
      31: '#cf222e',
      32: '#116329',
      33: '#8a4600',
      36: '#0550ae',
    },
  },
  dark: {
    background: '#0d1117',
    border: '#3d444d',
    text: '#e6edf3',
    styles: {
      1: '#ffffff',
      2: '#9198a1',
      31: '#ff7b72',
      32: '#7ee787',
      33: '#e3b341',
      36: '#79c0ff',
    },
  },
}
const COLUMNS = 80
const WIDTH = 8.4
const HEIGHT = 19
const MARGIN = 16
const FONT = 'ui-monospace,SFMono-Regular,Menlo,Consolas,&quot;DejaVu Sans Mono&quot;,monospace'

/** The lines of some sections, without the numbers of their headings. */
function chosen(output) {
  const sections = output.trimEnd().split('\n\n')
  const numbers = values.sections.split(',').map(Number)
  return numbers
    .flatMap((number) => ['', ...sections[number - 1].split('\n')])
    .slice(1)
    .map((line) => line.replace(/^(\u001b\[1m)\d {2}/, '$1'))
}

/** Pieces of a line: `{ text, style, column }`. */
function piecesOf(line) {
  const pieces = []
  let style = 0
  let column = 0
  for (const part of line.split(/(\u001b\[\d+m)/)) {
    const [, code] = /^\u001b\[(\d+)m$/.exec(part) ?? []
    if (code !== undefined) {
      style = Number(code)
      continue
    }
    // Runs of spaces would collapse: each text has a position of its own.
    for (const { 0: text, index } of part.matchAll(/\S+(?: \S+)*/g))
      pieces.push({ text, style, column: column + index })
    column += [...part].length
  }
  return pieces
}

const escaped = (text) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
const rounded = (value) => Math.round(value * 10) / 10

function draw(lines, { background, border, text: color, styles }) {
  const width = COLUMNS * WIDTH + 2 * MARGIN
  const height = lines.length * HEIGHT + 2 * MARGIN
  const texts = lines.flatMap((line, row) =>
    piecesOf(line).map(({ text, style, column }) => {
      const x = rounded(MARGIN + column * WIDTH)
      const y = MARGIN + row * HEIGHT + 14
      // Columns are kept whatever font the reader has.
      const length = rounded([...text].length * WIDTH)
      const fill = style === 0 ? '' : ` fill="${styles[style]}"`
      const weight = style === 1 ? ' font-weight="bold"' : ''
      return `<text x="${x}" y="${y}" textLength="${length}"${fill}${weight}>${escaped(text)}</text>`
    }),
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="${FONT}" font-size="14" fill="${color}">
<rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="8" fill="${background}" stroke="${border}"/>
${texts.join('\n')}
</svg>
`
}

const environment = { ...process.env, FORCE_COLOR: '1' }
delete environment.NO_COLOR
const output = execFileSync(process.execPath, [join(root, 'dist', 'cli.js'), 'demo'], {
  encoding: 'utf8',
  env: environment,
})
for (const [name, theme] of Object.entries(THEMES))
  writeFileSync(join(values.folder, `demo-${name}.svg`), draw(chosen(output), theme))

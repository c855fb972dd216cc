import { escaped } from '../capture/escaped.js'
import { RULES, SEVERITIES, type Severity } from '../capture/rules.js'
import type { Item } from './report.js'

/** One test of a JUnit report: a probe, or a whole capture. */
export interface JunitCase {
  name: string
  milliseconds: number
  items: readonly Item[]
}

/**
 * A report in the XML of JUnit. A test fails if it has a finding of the severity `failOn` or higher. `shown` removes from
 * each text what must not be shown.
 */
export function junitText(
  label: string,
  cases: readonly JunitCase[],
  failOn: Severity,
  shown: (text: string) => string = (text) => text,
): string {
  const xml = (text: string) => encoded(shown(text))
  const isFailing = ({ finding }: Item) =>
    SEVERITIES.indexOf(finding.severity) >= SEVERITIES.indexOf(failOn)
  const failures = cases.filter(({ items }) => items.some(isFailing)).length
  const total = cases.reduce((sum, { milliseconds }) => sum + milliseconds, 0)
  const counts = `tests="${cases.length}" failures="${failures}" errors="0" skipped="0" time="${seconds(total)}"`
  const tests = cases.map(({ name, milliseconds, items }) => {
    const failing = items.filter(isFailing)
    const others = items.filter((item) => !isFailing(item))
    const [first] = failing
    const failure =
      first === undefined
        ? ''
        : `\n      <failure message="${xml(summary(first))}" type="${first.finding.rule}">${xml(failing.map(describe).join('\n\n'))}</failure>`
    const notes =
      others.length === 0
        ? ''
        : `\n      <system-out>${xml(others.map(describe).join('\n\n'))}</system-out>`
    const content = `${failure}${notes}`
    const attributes = `classname="${xml(label)}" name="${xml(name)}" time="${seconds(milliseconds)}"`
    return content === ''
      ? `    <testcase ${attributes}/>`
      : `    <testcase ${attributes}>${content}\n    </testcase>`
  })
  return `<?xml version="1.0" encoding="UTF-8"?>
<testsuites ${counts}>
  <testsuite name="${xml(label)}" ${counts}>
${tests.join('\n')}
  </testsuite>
</testsuites>
`
}

function seconds(milliseconds: number): string {
  return (milliseconds / 1000).toFixed(3)
}

function summary({ finding: { rule, detail } }: Item): string {
  return detail === '' ? rule : `${rule}: ${detail}`
}

function describe(item: Item): string {
  const { finding, row, count } = item
  const { why, fix } = RULES[finding.rule]
  const message = [row.method, row.target, row.id].filter((each) => each !== undefined).join(' ')
  const place = `${finding.dir} bytes ${finding.start}-${finding.end}${count > 1 ? `, ${count} times` : ''}`
  return `${finding.severity} ${summary(item)}\n${message === '' ? '' : `${message}, `}${place}\n${why} ${fix}\n${finding.clause}`.trimEnd()
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
  '\n': '&#10;',
  '\t': '&#9;',
}

/** Text for XML 1.0. Characters that it cannot have become U+FFFD, those that change how text is shown JSON escapes. */
function encoded(text: string): string {
  const allowed = text
    .toWellFormed()
    // oxlint-disable-next-line no-control-regex -- XML does not allow these
    .replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\ufffe\uffff]/g, '\ufffd')
  return escaped(allowed).replaceAll(/[&<>"'\n\t]/g, (character) => ENTITIES[character] ?? '')
}

import { RULES, type Severity } from '../capture/rules.js'
import { type Item, bySeverity } from './report.js'
import type { LineOf } from './sarif.js'

const COMMANDS: Readonly<Record<Severity, string>> = {
  error: 'error',
  warning: 'warning',
  info: 'notice',
}

/** A report as workflow commands of GitHub Actions, which shows them as annotations: ten of each kind for a step. */
export function githubText(items: readonly Item[], lineOf: LineOf): string {
  return bySeverity(items)
    .map((item) => {
      const { finding, probe, capture } = item
      const { why, fix } = RULES[finding.rule]
      const line = lineOf(item)?.number
      const properties = Object.entries({ title: finding.rule, file: capture, line })
        .filter(([, value]) => value !== undefined)
        .map(([name, value]) => `${name}=${escape(String(value), /[%\r\n:,]/g)}`)
      const found = finding.detail === '' ? '' : `Found: ${finding.detail}`
      const place = probe === undefined ? '' : `In: ${probe}`
      const message = [`${why} ${fix}`, found, place, finding.clause]
        .filter((each) => each !== '')
        .join('\n')
      return `::${COMMANDS[finding.severity]} ${properties.join(',')}::${escape(message, /[%\r\n]/g)}\n`
    })
    .join('')
}

/** A command ends at the line's end; GitHub reads these characters back. */
function escape(text: string, characters: RegExp): string {
  return text
    .toWellFormed()
    .replaceAll(
      characters,
      (character) => `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
    )
}

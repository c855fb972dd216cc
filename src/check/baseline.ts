import { isObject } from '../schema/issue.js'
import type { Item } from './report.js'

const BASELINE_VERSION = 1

/** The text of a baseline: the findings that are known. `shown` removes from their texts what must not be shown. */
export function baselineText(
  items: readonly Item[],
  shown: (text: string) => string = (text) => text,
): string {
  const known = new Map(items.map((item) => [item.fingerprint, item]))
  const findings = [...known.values()]
    .map(({ fingerprint, finding: { rule, detail } }) => ({
      fingerprint,
      rule,
      detail: shown(detail),
    }))
    .toSorted((one, other) => (one.fingerprint < other.fingerprint ? -1 : 1))
  return `${JSON.stringify({ version: BASELINE_VERSION, findings }, null, 2)}\n`
}

/** The fingerprints of a baseline. Throws a SyntaxError if it is not one. */
export function readBaseline(text: string): Set<string> {
  const value = JSON.parse(text) as unknown
  const { version, findings } = isObject(value) ? value : {}
  if (version !== BASELINE_VERSION || !Array.isArray(findings))
    throw new SyntaxError(`it is not a baseline of version ${BASELINE_VERSION}`)
  const fingerprints = (findings as unknown[]).map((each) =>
    isObject(each) ? each['fingerprint'] : undefined,
  )
  return new Set(fingerprints.filter((each) => typeof each === 'string'))
}

import { type Revision, newest } from '../protocol/revisions/index.js'
import { type Rule, urlOfClause } from './clauses.js'
import { PROBE_RULES } from './probe-rules.js'
import { DEFINITION_RULES, PROTOCOL_RULES } from './protocol-rules.js'
import { WIRE_RULES } from './wire-rules.js'

export { SEVERITIES, type Severity } from './clauses.js'

/** Every rule by its id. */
export const RULES = {
  ...WIRE_RULES,
  ...PROTOCOL_RULES,
  ...DEFINITION_RULES,
  ...PROBE_RULES,
} as const satisfies Record<string, Rule>

export type RuleId = keyof typeof RULES

/** The URL of a rule's clause, in the revision of the message; empty if there is none. */
export function clauseUrl(rule: RuleId, revision: Revision = newest): string {
  const { clause }: Rule = RULES[rule]
  return urlOfClause(clause, revision)
}

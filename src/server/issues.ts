import { truncate } from '../jsonrpc/truncate.js'
import type { Issue } from '../schema/standard.js'

/** How many issues are told: an answer must not be larger than what it refuses. */
const MOST = 20

/** The first issues. What a peer has named in them is cut. */
export function firstIssues(issues: readonly Issue[]): Issue[] {
  return issues.slice(0, MOST).map(({ path, message }) => ({ path: truncate(path), message: truncate(message, 2000) }))
}

/** The first issues in words, and how many more there are. */
export function describeIssues(issues: readonly Issue[]): string {
  const shown = firstIssues(issues)
  const lines = shown.map(({ path, message }) => (path === '' ? message : `${path} ${message}`))
  if (issues.length > shown.length) lines.push(`and ${issues.length - shown.length} more`)
  return lines.join('; ')
}

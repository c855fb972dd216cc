import {
  type Revision,
  newest,
  newestHandshakeRevision,
  revisions,
} from '../protocol/revisions/index.js'

/** From the least to the most severe. */
export const SEVERITIES = ['info', 'warning', 'error'] as const
export type Severity = (typeof SEVERITIES)[number]

/** The page and section of the specification that a rule comes from, or the URL of another standard; empty if it is not about a standard. */
type Clause = string | ((revision: Revision) => string)

export interface Rule {
  severity: Severity
  clause: Clause
  /** Why it is a problem, and what to do about it. */
  why: string
  fix: string
}

const isStateless = ({ lifecycle }: Revision) => lifecycle === 'stateless'

export const STDIO: Clause = (revision) =>
  isStateless(revision) ? 'basic/transports/stdio' : 'basic/transports#stdio'

/** The oldest revision describes messages on a page of their own. */
export const messages =
  (section: string): Clause =>
  (revision) =>
    `${revision === revisions[0] ? 'basic/messages' : 'basic'}#${section}`

/** A section that the newest revision has on another page. */
export const moved =
  (before: string, now: string): Clause =>
  (revision) =>
    isStateless(revision) ? now : before

/** A section that only the revisions with a handshake have. */
export const handshakePage =
  (page: string): Clause =>
  (revision) =>
    isStateless(revision) ? urlOf(newestHandshakeRevision, page) : page

/** A section that only the newest revision has. */
export const newestPage = (page: string): Clause => urlOf(newest, page)

/** The first revisions have their schema in the repository of the specification only. */
export const SCHEMA: Clause = ({ id, structuredContent }) =>
  structuredContent === 'none'
    ? `https://github.com/modelcontextprotocol/modelcontextprotocol/blob/main/schema/${id}/schema.json`
    : 'schema'

export const TOOL_NAMES: Clause = ({ fields }) =>
  fields.tool.includes('icons') ? 'server/tools#tool-names' : 'server/tools#tool'
export const JSON_RFC = 'https://www.rfc-editor.org/rfc/rfc8259'
export const JSON_RPC = 'https://www.jsonrpc.org/specification'

function urlOf({ id }: Revision, page: string): string {
  return `https://modelcontextprotocol.io/specification/${id}/${page}`
}

/** The URL of a clause, in a revision. */
export function urlOfClause(clause: Clause, revision: Revision): string {
  const page = typeof clause === 'string' ? clause : clause(revision)
  return page === '' || page.startsWith('https:') ? page : urlOf(revision, page)
}

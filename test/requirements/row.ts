/*
 * The requirements of the specification as data. A row is one requirement, in
 * our own words, with every place in every revision that states it. `levels`
 * has one entry per capitalised keyword of that place, so that the rows of a
 * page add up to the keywords of the page.
 */

export type Level = 'MUST' | 'MUST NOT' | 'SHOULD' | 'SHOULD NOT' | 'RECOMMENDED' | 'REQUIRED'

/** Why a row does not bind ccmcp, as a server or as a client. */
export const UNBOUND = {
  host: 'it binds the application that uses the client: it has the user interface, the model and the policy; ccmcp gives it what the server sent',
  people: 'it is about people and user interfaces',
  author: 'it binds the author of a definition: ccmcp sends the text it is given',
  intermediary: 'it binds intermediaries such as proxies',
  reading: 'it explains or summarizes the specification',
  tasks:
    'tasks are experimental in this revision and replaced by an extension in the next; ccmcp does not implement them',
  unused:
    'it concerns an optional feature that ccmcp does not use: it sends a request and waits instead',
  transport: 'it binds implementers of custom transports',
  authorizationServer: 'it binds authorization servers: ccmcp is a client or a resource server',
  operator:
    'it binds who writes and operates a server, and chooses its scopes and what it sends to other services',
} as const

export interface Row {
  readonly id: string
  readonly levels: readonly Level[]
  /** By `page#anchor` of the specification: the revisions that state it there. */
  readonly at: Readonly<Record<string, readonly string[]>>
  readonly says: string
  readonly unbound?: keyof typeof UNBOUND
  /** The feature it belongs to, if that is not implemented yet. */
  readonly pending?: string
}

const REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'] as const
type Id = (typeof REVISIONS)[number]

/** The revisions from `first` to `last`, inclusive. */
export function revisions(first: Id = '2024-11-05', last: Id = '2026-07-28'): readonly string[] {
  return REVISIONS.slice(REVISIONS.indexOf(first), REVISIONS.indexOf(last) + 1)
}

export const all = revisions()
export const handshake = revisions('2024-11-05', '2025-11-25')
export const modern = revisions('2026-07-28')

/** Where the pages of extensions are: they have repositories of their own. */
const EXTENSIONS: Readonly<Record<string, string>> = {
  'extensions/tasks':
    'https://github.com/modelcontextprotocol/ext-tasks/blob/main/specification/2026-07-28/tasks.md',
}

/** Whether a place is on a page of an extension. */
export function isOfExtension(place: string): boolean {
  return place.startsWith('extensions/')
}

export function linksOf({ at }: Row): string[] {
  return Object.entries(at).flatMap(([place, dates]) => {
    const [page = '', anchor = ''] = place.split('#')
    if (isOfExtension(place)) return [`${EXTENSIONS[page]}#${anchor}`]
    return dates.map(
      (revision) =>
        `https://modelcontextprotocol.io/specification/${revision}/${place.replace(/#$/, '')}`,
    )
  })
}

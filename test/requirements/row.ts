/*
 * The specification's demands as data. A row is one demand, in our own words,
 * with every place where a revision makes it. `levels` has one entry for each
 * capitalised keyword of that place, so that the rows of a page can be counted
 * against the page.
 */

export type Level = 'MUST' | 'MUST NOT' | 'SHOULD' | 'SHOULD NOT' | 'RECOMMENDED' | 'REQUIRED'

/** Why a row asks nothing of ccmcp as a server. */
export const UNBOUND = {
  client: 'it binds the client',
  people: 'it is for people and what they are shown',
  author:
    'it binds the author of a definition: ccmcp sends the words it is given and cannot judge them',
  notSent: 'it binds who sends a request: ccmcp as a server sends none in this direction',
  intermediary: 'it binds proxies and the like',
  reading: 'it says how to read the specification, or repeats it in short',
  tasks:
    'tasks are experimental in this revision and replaced by an extension in the next; ccmcp leaves them out',
  unused:
    'it binds a means of the protocol that ccmcp does not use: it asks by a request and waits instead',
  transport: 'it binds the makers of transports that are not part of the specification',
} as const

export interface Row {
  readonly id: string
  readonly levels: readonly Level[]
  /** `page#anchor` of the specification, and the revisions that have it there. */
  readonly at: Readonly<Record<string, readonly string[]>>
  readonly says: string
  readonly unbound?: keyof typeof UNBOUND
  /** The feature that it comes with, where that is not built yet. */
  readonly pending?: string
}

const REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'] as const
type Id = (typeof REVISIONS)[number]

/** The revisions from one to another, both included. */
export function revisions(first: Id = '2024-11-05', last: Id = '2026-07-28'): readonly string[] {
  return REVISIONS.slice(REVISIONS.indexOf(first), REVISIONS.indexOf(last) + 1)
}

export const all = revisions()
export const handshake = revisions('2024-11-05', '2025-11-25')
export const modern = revisions('2026-07-28')

export function linksOf({ at }: Row): string[] {
  return Object.entries(at).flatMap(([place, dates]) =>
    dates.map(
      (revision) =>
        `https://modelcontextprotocol.io/specification/${revision}/${place.replace(/#$/, '')}`,
    ),
  )
}

import { type Params, isObject } from '../jsonrpc/message.js'
import { type Revision, revisions } from '../protocol/revisions/index.js'
import { type Lifecycle, discoveredDetails } from './opening.js'
import type { ServerDetails } from './session.js'

/** What is known of a server from an earlier connection: plain JSON, without tokens or session ids. */
export interface Prior {
  readonly version: 1
  /** When it was made: a date in ISO 8601. */
  readonly date: string
  /** The negotiated protocol revision. */
  readonly revision: string
  /** The transport, if it is not Streamable HTTP. */
  readonly transport?: 'http+sse'
  /** The result of `server/discover`, which may be reused for `ttlMs` milliseconds. */
  readonly discovered?: Params
}

/** How a target was opened, or should be. */
export interface Known {
  readonly opening: Lifecycle
  readonly httpSse: boolean
  /** What the server has allowed to reuse. */
  readonly details?: ServerDetails
}

/** Milliseconds after which a prior is not used any more: the server may have been replaced by a newer one. */
const MAX_AGE = 7 * 24 * 60 * 60 * 1000

export function priorOf(
  { revision, discoverResult: discovered }: ServerDetails,
  httpSse: boolean,
): Prior {
  return {
    version: 1,
    date: new Date().toISOString(),
    revision: revision.id,
    ...(httpSse ? { transport: 'http+sse' } : {}),
    ...(discovered === undefined ? {} : { discovered }),
  }
}

/** What a prior says; undefined if it is not valid or too old. It may come from a file that anyone has written. */
export function readPrior(prior: unknown): Known | undefined {
  if (!isObject(prior) || prior['version'] !== 1 || typeof prior['date'] !== 'string')
    return undefined
  const { transport, discovered } = prior
  const revision = revisions.find(({ id }) => id === prior['revision'])
  const age = Date.now() - Date.parse(prior['date'])
  if (revision === undefined || !(age >= 0 && age < MAX_AGE)) return undefined
  const { lifecycle: opening } = revision
  const httpSse = transport === 'http+sse' && opening === 'handshake'
  const details = isObject(discovered) ? freshDetails(discovered, revision, age) : undefined
  return { opening, httpSse, ...(details === undefined ? {} : { details }) }
}

function freshDetails(
  discovered: Params,
  revision: Revision,
  age: number,
): ServerDetails | undefined {
  const { ttlMs } = discovered
  if (typeof ttlMs !== 'number' || age >= ttlMs) return undefined
  try {
    const details = discoveredDetails(discovered)
    return details.revision === revision ? details : undefined
  } catch {
    return undefined
  }
}

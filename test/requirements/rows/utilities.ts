import { all, handshake, modern, revisions, type Row } from '../row.js'

const completion = (anchor: string, dates: readonly string[]) => ({
  [`server/utilities/completion#${anchor}`]: dates,
})
const logging = (anchor: string, dates: readonly string[]) => ({
  [`server/utilities/logging#${anchor}`]: dates,
})
const pagination = (anchor: string, dates: readonly string[]) => ({
  [`server/utilities/pagination#${anchor}`]: dates,
})
const caching = (anchor: string) => ({ [`server/utilities/caching#${anchor}`]: modern })
const since2025 = revisions('2025-03-26')

export const utilities: readonly Row[] = [
  {
    id: 'completion.capability',
    levels: ['MUST'],
    at: completion('capabilities', since2025),
    says: 'A server that completes declares the `completions` capability.',
  },
  {
    id: 'completion.errors',
    levels: ['SHOULD'],
    at: completion('error-handling', since2025),
    says: 'Without the capability it is −32601, an unknown name or a missing argument −32602, an internal error −32603.',
  },
  {
    id: 'completion.servers',
    levels: ['SHOULD'],
    at: completion('implementation-considerations', all),
    says: 'The best values come first, requests are limited, input is checked.',
  },
  {
    id: 'completion.clients',
    levels: ['SHOULD'],
    at: completion('implementation-considerations', all),
    says: 'Clients wait a little between requests, keep results, and live with missing ones.',
    unbound: 'client',
  },
  {
    id: 'completion.security',
    levels: ['MUST'],
    at: completion('security', all),
    says: 'Input is checked, the rate limited, and nothing is completed that the caller may not see.',
  },

  {
    id: 'logging.capability',
    levels: ['MUST'],
    at: logging('capabilities', all),
    says: 'A server that sends log messages declares the `logging` capability.',
  },
  {
    id: 'logging.errors',
    levels: ['SHOULD'],
    at: logging('error-handling', handshake),
    says: 'An unknown level is −32602.',
  },
  {
    id: 'logging.level-errors',
    levels: ['SHOULD'],
    at: logging('error-handling', modern),
    says: 'A request with an unknown log level is refused with −32602.',
  },
  {
    id: 'logging.servers',
    levels: ['SHOULD'],
    at: logging('implementation-considerations', all),
    says: 'Messages are limited in their rate, have context and steady names, and nothing sensitive.',
  },
  {
    id: 'logging.secrets',
    levels: ['MUST NOT'],
    at: logging('security', all),
    says: 'No credentials, personal data or internals of the system are logged.',
  },
  {
    id: 'logging.security',
    levels: ['SHOULD'],
    at: logging('security', all),
    says: 'Messages are limited, their data checked, and only who may see them does.',
  },
  {
    id: 'logging.deprecated',
    levels: ['SHOULD NOT', 'SHOULD'],
    at: logging('', modern),
    says: 'New servers log to stderr or to OpenTelemetry.',
    unbound: 'author',
  },
  {
    id: 'logging.only-if-asked',
    levels: ['MUST NOT'],
    at: logging('per-request-log-level', modern),
    says: 'A request that names no log level gets no messages.',
  },
  {
    id: 'logging.own-stream',
    levels: ['MUST NOT'],
    at: logging('per-request-log-level', modern),
    says: 'Messages go with their own request, never on a stream of changes or with another request.',
  },

  {
    id: 'pagination.page-size',
    levels: ['MUST NOT'],
    at: pagination('pagination-model', all),
    says: 'Clients expect no certain page size.',
    unbound: 'client',
  },
  {
    id: 'pagination.servers',
    levels: ['SHOULD'],
    at: pagination('implementation-guidelines', all),
    says: 'Cursors are stable, and wrong ones are dealt with.',
  },
  {
    id: 'pagination.clients',
    levels: ['SHOULD'],
    at: pagination('implementation-guidelines', all),
    says: 'Clients take a missing `nextCursor` for the end, and lists with or without pages.',
    unbound: 'client',
  },
  {
    id: 'pagination.opaque',
    levels: ['MUST'],
    at: pagination('implementation-guidelines', all),
    says: 'Clients do not look into cursors, change them or keep them.',
    unbound: 'client',
  },
  {
    id: 'pagination.empty-cursor',
    levels: ['MUST NOT'],
    at: pagination('implementation-guidelines', modern),
    says: 'Clients do not take an empty cursor for the end.',
    unbound: 'client',
  },
  {
    id: 'pagination.invalid',
    levels: ['SHOULD'],
    at: pagination('error-handling', all),
    says: 'A wrong cursor is −32602.',
  },

  {
    id: 'caching.hints',
    levels: ['MUST'],
    at: caching('cacheable-results'),
    says: 'Complete results of `server/discover`, the lists and `resources/read` say how long they are good and for whom.',
  },
  {
    id: 'caching.key',
    levels: ['MUST NOT'],
    at: caching('cache-key'),
    says: 'What was cached answers only the same request.',
    unbound: 'client',
  },
  {
    id: 'caching.retries',
    levels: ['MUST NOT'],
    at: caching('cache-key'),
    says: 'Results of retries are not cached.',
    unbound: 'client',
  },
  {
    id: 'caching.ttl-meaning',
    levels: ['SHOULD', 'SHOULD', 'SHOULD', 'SHOULD'],
    at: caching('time-to-live-ttl-field'),
    says: 'Clients keep a result for `ttlMs`, and not at all where it is 0, absent or negative.',
    unbound: 'client',
  },
  {
    id: 'caching.ttl',
    levels: ['MUST'],
    at: caching('time-to-live-ttl-field'),
    says: '`ttlMs` is not negative.',
  },
  {
    id: 'caching.freshness',
    levels: ['SHOULD', 'SHOULD NOT', 'MUST'],
    at: caching('freshness-calculation'),
    says: 'Clients fetch again when they need what is stale, and do not poll.',
    unbound: 'client',
  },
  {
    id: 'caching.private',
    levels: ['MUST NOT'],
    at: caching('cache-scope-field'),
    says: 'What is private is not shared between callers.',
    unbound: 'client',
  },
  {
    id: 'caching.pages-clients',
    levels: ['SHOULD', 'SHOULD', 'SHOULD'],
    at: caching('interaction-with-pagination'),
    says: 'Clients fetch a stale page by its cursor, and the whole list for a snapshot or when a cursor is refused.',
    unbound: 'client',
  },
  {
    id: 'caching.pages',
    levels: ['MUST', 'MUST'],
    at: caching('interaction-with-pagination'),
    says: 'All pages of a list have the same `cacheScope`.',
  },
  {
    id: 'caching.public',
    levels: ['MUST'],
    at: caching('security-considerations'),
    says: 'What is public may be shown to anybody: nothing is public unless its author says so.',
  },
  {
    id: 'caching.access',
    levels: ['MUST', 'MUST NOT'],
    at: caching('security-considerations'),
    says: 'Access is controlled for each definition, not by `cacheScope`.',
  },
]

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
    says: 'A server with completion declares the `completions` capability.',
  },
  {
    id: 'completion.errors',
    levels: ['SHOULD'],
    at: completion('error-handling', since2025),
    says: 'Without the capability the error is −32601, for an unknown name or a missing argument −32602, for an internal error −32603.',
  },
  {
    id: 'completion.servers',
    levels: ['SHOULD'],
    at: completion('implementation-considerations', all),
    says: 'Suggestions are sorted by relevance, requests are rate limited, inputs are validated.',
  },
  {
    id: 'completion.clients',
    levels: ['SHOULD'],
    at: completion('implementation-considerations', all),
    says: 'Clients debounce requests, cache results, and handle missing ones.',
    unbound: 'host',
  },
  {
    id: 'completion.security',
    levels: ['MUST'],
    at: completion('security', all),
    says: 'Inputs are validated, requests rate limited, and access to suggestions controlled.',
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
    says: 'A request with an unknown log level is rejected with −32602.',
  },
  {
    id: 'logging.servers',
    levels: ['SHOULD'],
    at: logging('implementation-considerations', all),
    says: 'Log messages are rate limited, have context and consistent logger names, and contain nothing sensitive.',
  },
  {
    id: 'logging.secrets',
    levels: ['MUST NOT'],
    at: logging('security', all),
    says: 'Log messages contain no credentials, personal data or system internals.',
  },
  {
    id: 'logging.security',
    levels: ['SHOULD'],
    at: logging('security', all),
    says: 'Log messages are rate limited, validated, and access to them is controlled.',
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
    says: 'A request without a log level gets no log messages.',
  },
  {
    id: 'logging.own-stream',
    levels: ['MUST NOT'],
    at: logging('per-request-log-level', modern),
    says: 'Log messages are sent on the stream of their request, never on a subscription stream or another one.',
  },

  {
    id: 'pagination.page-size',
    levels: ['MUST NOT'],
    at: pagination('pagination-model', all),
    says: 'Clients do not assume a page size.',
  },
  {
    id: 'pagination.servers',
    levels: ['SHOULD'],
    at: pagination('implementation-guidelines', all),
    says: 'Cursors are stable, and invalid ones are handled.',
  },
  {
    id: 'pagination.clients',
    levels: ['SHOULD'],
    at: pagination('implementation-guidelines', all),
    says: 'Clients treat a missing `nextCursor` as the end, and support lists with and without pagination.',
  },
  {
    id: 'pagination.opaque',
    levels: ['MUST'],
    at: pagination('implementation-guidelines', all),
    says: 'Clients do not parse, modify or persist cursors.',
  },
  {
    id: 'pagination.empty-cursor',
    levels: ['MUST NOT'],
    at: pagination('implementation-guidelines', modern),
    says: 'Clients do not treat an empty cursor as the end.',
  },
  {
    id: 'pagination.invalid',
    levels: ['SHOULD'],
    at: pagination('error-handling', all),
    says: 'An invalid cursor is −32602.',
  },

  {
    id: 'caching.hints',
    levels: ['MUST'],
    at: caching('cacheable-results'),
    says: 'Complete results of `server/discover`, the lists and `resources/read` have `ttlMs` and `cacheScope`.',
  },
  {
    id: 'caching.key',
    levels: ['MUST NOT'],
    at: caching('cache-key'),
    says: 'A cached result is used only for the same request.',
  },
  {
    id: 'caching.retries',
    levels: ['MUST NOT'],
    at: caching('cache-key'),
    says: 'Results of retries are not cached.',
  },
  {
    id: 'caching.ttl-meaning',
    levels: ['SHOULD', 'SHOULD', 'SHOULD', 'SHOULD'],
    at: caching('time-to-live-ttl-field'),
    says: 'Clients cache a result for `ttlMs`, and not at all if it is 0, absent or negative.',
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
    says: 'Clients fetch stale results again when they need them, and do not poll.',
  },
  {
    id: 'caching.private',
    levels: ['MUST NOT'],
    at: caching('cache-scope-field'),
    says: 'Private results are not shared between callers.',
  },
  {
    id: 'caching.pages-clients',
    levels: ['SHOULD', 'SHOULD', 'SHOULD'],
    at: caching('interaction-with-pagination'),
    says: 'Clients fetch a stale page by its cursor, and the whole list for a snapshot or when a cursor is rejected.',
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
    says: 'Public results may be shared with any caller: nothing is public unless its author says so.',
  },
  {
    id: 'caching.access',
    levels: ['MUST', 'MUST NOT'],
    at: caching('security-considerations'),
    says: 'Access is controlled for each definition, not by `cacheScope`.',
  },
]

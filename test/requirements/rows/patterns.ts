import { handshake, modern, revisions, type Row } from '../row.js'

const november = revisions('2025-11-25', '2025-11-25')
const cancellation = (anchor: string) => ({ [`basic/utilities/cancellation#${anchor}`]: handshake })
const cancellationToday = (anchor: string) => ({
  [`basic/patterns/cancellation#${anchor}`]: modern,
})
const progress = (anchor: string, dates: readonly string[] = handshake) => ({
  [`basic/utilities/progress#${anchor}`]: dates,
})
const progressToday = (anchor: string) => ({ [`basic/patterns/progress#${anchor}`]: modern })
const ping = (anchor: string) => ({ [`basic/utilities/ping#${anchor}`]: handshake })
const mrtr = (anchor: string) => ({ [`basic/patterns/mrtr#${anchor}`]: modern })
const subscriptions = (anchor: string) => ({ [`basic/patterns/subscriptions#${anchor}`]: modern })

/** Cancellation, progress, ping, subscriptions, multi round-trip requests. */
export const patterns: readonly Row[] = [
  {
    id: 'patterns.no-server-requests',
    levels: ['MUST NOT'],
    at: { 'basic/patterns#': modern },
    says: 'The server sends no requests.',
  },

  {
    id: 'cancellation.only-open',
    levels: ['MUST'],
    at: { ...cancellation('behavior-requirements'), ...cancellationToday('behavior-requirements') },
    says: 'Only requests of the same direction that are believed to be in progress are cancelled.',
  },
  {
    id: 'cancellation.initialize',
    levels: ['MUST NOT'],
    at: cancellation('behavior-requirements'),
    says: 'Clients do not cancel `initialize`; such a cancellation is ignored.',
  },
  {
    id: 'cancellation.tasks',
    levels: ['MUST'],
    at: { 'basic/utilities/cancellation#behavior-requirements': november },
    says: 'Tasks are cancelled by `tasks/cancel`.',
    unbound: 'tasks',
  },
  {
    id: 'cancellation.stop',
    levels: ['SHOULD'],
    at: { ...cancellation('behavior-requirements'), ...cancellationToday('behavior-requirements') },
    says: 'A cancelled request stops, its resources are freed and it gets no response.',
  },
  {
    id: 'cancellation.ignore-late',
    levels: ['SHOULD'],
    at: { ...cancellation('behavior-requirements'), ...cancellationToday('behavior-requirements') },
    says: 'The sender of a cancellation ignores a late response.',
  },
  {
    id: 'cancellation.races',
    levels: ['MUST'],
    at: { ...cancellation('timing-considerations'), ...cancellationToday('timing-considerations') },
    says: 'A late cancellation is handled gracefully.',
  },
  {
    id: 'cancellation.log',
    levels: ['SHOULD'],
    at: { ...cancellation('implementation-notes'), ...cancellationToday('implementation-notes') },
    says: 'The reasons of cancellations are logged.',
  },
  {
    id: 'cancellation.ui',
    levels: ['SHOULD'],
    at: { ...cancellation('implementation-notes'), ...cancellationToday('implementation-notes') },
    says: 'User interfaces show that a cancellation was requested.',
    unbound: 'people',
  },
  {
    id: 'cancellation.invalid',
    levels: ['SHOULD'],
    at: { ...cancellation('error-handling'), ...cancellationToday('error-handling') },
    says: 'A cancellation that is malformed, or of an unknown or completed request, is ignored.',
  },
  {
    id: 'cancellation.clients-cancel',
    levels: ['SHOULD'],
    at: cancellationToday(''),
    says: 'Clients cancel requests that they no longer need.',
  },
  {
    id: 'cancellation.teardown',
    levels: ['MUST'],
    at: cancellationToday(''),
    says: 'A server that closes a subscription over stdio sends `notifications/cancelled` for it.',
  },
  {
    id: 'cancellation.by-servers',
    levels: ['MUST NOT'],
    at: cancellationToday(''),
    says: 'A server sends `notifications/cancelled` for subscriptions only.',
  },
  {
    id: 'cancellation.by-servers-reference',
    levels: ['MUST'],
    at: cancellationToday('behavior-requirements'),
    says: 'What a server cancels is a `subscriptions/listen` request.',
  },
  {
    id: 'cancellation.http',
    levels: ['MUST'],
    at: cancellationToday('transport-specific-cancellation'),
    says: 'Over HTTP, closing the stream cancels the request.',
  },
  {
    id: 'cancellation.stdio',
    levels: ['MUST'],
    at: cancellationToday('transport-specific-cancellation'),
    says: 'Over stdio, clients cancel by a notification.',
  },
  {
    id: 'cancellation.timeouts',
    levels: ['SHOULD', 'SHOULD', 'SHOULD', 'SHOULD'],
    at: cancellationToday('timeouts'),
    says: 'Sent requests have configurable timeouts, with a maximum.',
  },

  {
    id: 'progress.token',
    levels: ['MUST'],
    at: { ...progress('progress-flow'), ...progressToday('progress-flow') },
    says: 'A progress token is a string or an integer.',
  },
  {
    id: 'progress.token-unique',
    levels: ['MUST'],
    at: { ...progress('progress-flow'), ...progressToday('progress-flow') },
    says: 'A progress token is unique among active requests.',
  },
  {
    id: 'progress.increases',
    levels: ['MUST'],
    at: { ...progress('progress-flow'), ...progressToday('progress-flow') },
    says: 'The progress value increases with each notification.',
  },
  {
    id: 'progress.message',
    levels: ['SHOULD'],
    at: {
      ...progress('progress-flow', revisions('2025-03-26', '2025-11-25')),
      ...progressToday('progress-flow'),
    },
    says: 'The message is for people to read.',
    unbound: 'author',
  },
  {
    id: 'progress.active',
    levels: ['MUST'],
    at: { ...progress('behavior-requirements'), ...progressToday('behavior-requirements') },
    says: 'Progress notifications reference only tokens of active requests.',
  },
  {
    id: 'progress.track',
    levels: ['SHOULD'],
    at: { ...progress('implementation-notes'), ...progressToday('implementation-notes') },
    says: 'Both sides track active progress tokens.',
  },
  {
    id: 'progress.rate',
    levels: ['SHOULD'],
    at: { ...progress('implementation-notes'), ...progressToday('implementation-notes') },
    says: 'Progress notifications are rate limited.',
  },
  {
    id: 'progress.stops',
    levels: ['MUST'],
    at: { ...progress('implementation-notes'), ...progressToday('implementation-notes') },
    says: 'Progress notifications stop after the response.',
  },
  {
    id: 'progress.tasks',
    levels: ['MUST', 'MUST', 'MUST'],
    at: { 'basic/utilities/progress#behavior-requirements': november },
    says: 'A progress token is valid for the lifetime of its task.',
    unbound: 'tasks',
  },

  {
    id: 'ping.answer',
    levels: ['MUST'],
    at: ping('behavior-requirements'),
    says: 'A ping gets an empty response promptly.',
  },
  {
    id: 'ping.send',
    levels: ['SHOULD', 'SHOULD', 'SHOULD', 'SHOULD'],
    at: ping('implementation-considerations'),
    says: 'Pings are sent periodically, at a configurable, moderate rate.',
    unbound: 'host',
  },
  {
    id: 'ping.failures',
    levels: ['SHOULD', 'SHOULD'],
    at: ping('error-handling'),
    says: 'A sender that gets no response to a ping may close the connection, and logs it.',
    unbound: 'host',
  },

  {
    id: 'listen.only-requested',
    levels: ['MUST NOT'],
    at: subscriptions('opening-a-stream'),
    says: 'A subscription stream carries only the requested notifications.',
  },
  {
    id: 'listen.acknowledged',
    levels: ['MUST', 'MUST NOT'],
    at: subscriptions('acknowledgment'),
    says: 'The first message of a subscription stream is the acknowledgment, with what the server supports.',
  },
  {
    id: 'listen.check-filter',
    levels: ['SHOULD'],
    at: subscriptions('acknowledgment'),
    says: 'Clients check what was acknowledged.',
  },
  {
    id: 'listen.correlate',
    levels: ['MUST'],
    at: subscriptions('receiving-notifications'),
    says: 'Clients distinguish subscriptions by their ids.',
  },
  {
    id: 'listen.result',
    levels: ['SHOULD'],
    at: { ...subscriptions('cancellation'), ...subscriptions('graceful-closure') },
    says: 'A server that closes a subscription sends the response first.',
  },
  {
    id: 'listen.again',
    levels: ['MUST'],
    at: subscriptions('graceful-closure'),
    says: 'Clients subscribe again after reconnecting.',
  },

  {
    id: 'mrtr.only-way',
    levels: ['MUST'],
    at: mrtr(''),
    says: 'Servers send input requests in results, not as requests.',
  },
  {
    id: 'mrtr.state-opaque',
    levels: ['MUST NOT'],
    at: mrtr('inputrequiredresult'),
    says: 'Clients treat `requestState` as opaque.',
  },
  {
    id: 'mrtr.methods',
    levels: ['MUST NOT'],
    at: mrtr('supported-requests'),
    says: 'Only `tools/call`, `prompts/get` and `resources/read` may return `input_required`.',
  },
  {
    id: 'mrtr.keys',
    levels: ['MUST'],
    at: mrtr('server-requirements-basic-workflow'),
    says: 'The keys of input requests are unique within a request.',
  },
  {
    id: 'mrtr.kinds',
    levels: ['MUST'],
    at: mrtr('server-requirements-basic-workflow'),
    says: 'An input request is an elicitation, sampling or roots request.',
  },
  {
    id: 'mrtr.state',
    levels: ['MUST', 'MUST', 'MUST'],
    at: mrtr('server-requirements-basic-workflow'),
    says: 'A `requestState` is untrusted input: its integrity is verified, and it is rejected if that fails.',
  },
  {
    id: 'mrtr.replay',
    levels: ['SHOULD'],
    at: mrtr('server-requirements-basic-workflow'),
    says: 'A `requestState` is bound to its user, an expiry time and its request.',
  },
  {
    id: 'mrtr.once',
    levels: ['MUST'],
    at: mrtr('server-requirements-basic-workflow'),
    says: 'The server prevents replay where an action must happen only once.',
  },
  {
    id: 'mrtr.something',
    levels: ['MUST'],
    at: mrtr('server-requirements-basic-workflow'),
    says: 'An `input_required` result has input requests or a request state.',
  },
  {
    id: 'mrtr.declared',
    levels: ['MUST NOT', 'MUST NOT'],
    at: mrtr('server-requirements-basic-workflow'),
    says: 'Servers send only input requests that the client declared support for.',
  },
  {
    id: 'mrtr.no-answer',
    levels: ['MUST NOT'],
    at: mrtr('server-requirements-basic-workflow'),
    says: 'Servers do not rely on clients to retry.',
  },
  {
    id: 'mrtr.clients',
    levels: ['MUST', 'MUST', 'MUST NOT', 'MUST NOT', 'MUST', 'MUST NOT'],
    at: mrtr('client-requirements-basic-workflow'),
    says: 'Clients collect the responses, return the state unchanged, and retry with a new id.',
  },
  {
    id: 'mrtr.validate',
    levels: ['SHOULD', 'SHOULD'],
    at: mrtr('error-handling'),
    says: 'Input responses are validated; malformed ones are protocol errors.',
  },
  {
    id: 'mrtr.unexpected',
    levels: ['SHOULD'],
    at: mrtr('error-handling'),
    says: 'Unexpected input responses are ignored.',
  },
  {
    id: 'mrtr.missing',
    levels: ['SHOULD'],
    at: mrtr('error-handling'),
    says: 'Missing input responses are requested again.',
  },
  {
    id: 'mrtr.security',
    levels: ['MUST'],
    at: mrtr('security-considerations'),
    says: 'The state is validated.',
  },
]

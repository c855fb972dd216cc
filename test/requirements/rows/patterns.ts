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
    says: 'Only requests of the same direction that are believed to be under way are cancelled.',
    unbound: 'notSent',
  },
  {
    id: 'cancellation.initialize',
    levels: ['MUST NOT'],
    at: cancellation('behavior-requirements'),
    says: 'Clients do not cancel `initialize`; one that does changes nothing.',
  },
  {
    id: 'cancellation.tasks',
    levels: ['MUST'],
    at: { 'basic/utilities/cancellation#behavior-requirements': november },
    says: 'Tasks are cancelled by a request of their own.',
    unbound: 'tasks',
  },
  {
    id: 'cancellation.stop',
    levels: ['SHOULD'],
    at: { ...cancellation('behavior-requirements'), ...cancellationToday('behavior-requirements') },
    says: 'A cancelled request is stopped, its resources are freed and it is not answered.',
  },
  {
    id: 'cancellation.ignore-late',
    levels: ['SHOULD'],
    at: { ...cancellation('behavior-requirements'), ...cancellationToday('behavior-requirements') },
    says: 'Who has cancelled ignores a late answer.',
    unbound: 'notSent',
  },
  {
    id: 'cancellation.races',
    levels: ['MUST'],
    at: { ...cancellation('timing-considerations'), ...cancellationToday('timing-considerations') },
    says: 'A cancellation that comes too late does no harm.',
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
    says: 'Users see that a cancellation was asked for.',
    unbound: 'people',
  },
  {
    id: 'cancellation.invalid',
    levels: ['SHOULD'],
    at: { ...cancellation('error-handling'), ...cancellationToday('error-handling') },
    says: 'A cancellation of what is unknown or done, or that is malformed, is ignored.',
  },
  {
    id: 'cancellation.clients-cancel',
    levels: ['SHOULD'],
    at: cancellationToday(''),
    says: 'Clients cancel what they do not need any more.',
    unbound: 'client',
  },
  {
    id: 'cancellation.teardown',
    levels: ['MUST'],
    at: cancellationToday(''),
    says: 'A server that ends a stream of changes over stdio sends `notifications/cancelled` for it.',
  },
  {
    id: 'cancellation.by-servers',
    levels: ['MUST NOT'],
    at: cancellationToday(''),
    says: 'A server sends `notifications/cancelled` for nothing else.',
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
    unbound: 'client',
  },
  {
    id: 'cancellation.timeouts',
    levels: ['SHOULD', 'SHOULD', 'SHOULD', 'SHOULD'],
    at: cancellationToday('timeouts'),
    says: 'Requests that are sent have time limits, set for each, with a maximum.',
    unbound: 'notSent',
  },

  {
    id: 'progress.token',
    levels: ['MUST'],
    at: { ...progress('progress-flow'), ...progressToday('progress-flow') },
    says: 'A token is a string or an integer; anything else asks for nothing.',
  },
  {
    id: 'progress.token-unique',
    levels: ['MUST'],
    at: { ...progress('progress-flow'), ...progressToday('progress-flow') },
    says: 'A token is unique among the requests under way.',
    unbound: 'client',
  },
  {
    id: 'progress.increases',
    levels: ['MUST'],
    at: { ...progress('progress-flow'), ...progressToday('progress-flow') },
    says: 'Each value is larger than the one before.',
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
    says: 'Progress names only tokens of requests that are under way.',
  },
  {
    id: 'progress.track',
    levels: ['SHOULD'],
    at: { ...progress('implementation-notes'), ...progressToday('implementation-notes') },
    says: 'Both sides know which tokens are in use.',
  },
  {
    id: 'progress.rate',
    levels: ['SHOULD'],
    at: { ...progress('implementation-notes'), ...progressToday('implementation-notes') },
    says: 'Progress is limited in its rate.',
  },
  {
    id: 'progress.stops',
    levels: ['MUST'],
    at: { ...progress('implementation-notes'), ...progressToday('implementation-notes') },
    says: 'Progress ends with the answer.',
  },
  {
    id: 'progress.tasks',
    levels: ['MUST', 'MUST', 'MUST'],
    at: { 'basic/utilities/progress#behavior-requirements': november },
    says: 'A token lasts as long as its task.',
    unbound: 'tasks',
  },

  {
    id: 'ping.answer',
    levels: ['MUST'],
    at: ping('behavior-requirements'),
    says: 'A ping is answered at once, with an empty result.',
  },
  {
    id: 'ping.send',
    levels: ['SHOULD', 'SHOULD', 'SHOULD', 'SHOULD'],
    at: ping('implementation-considerations'),
    says: 'Pings are sent now and then, not too often, with settings that fit the network.',
    unbound: 'client',
  },
  {
    id: 'ping.failures',
    levels: ['SHOULD', 'SHOULD'],
    at: ping('error-handling'),
    says: 'Who gets no answer to a ping gives the connection up and logs it.',
    unbound: 'client',
  },

  {
    id: 'listen.only-requested',
    levels: ['MUST NOT'],
    at: subscriptions('opening-a-stream'),
    says: 'A stream carries only what it was opened for.',
  },
  {
    id: 'listen.acknowledged',
    levels: ['MUST', 'MUST NOT'],
    at: subscriptions('acknowledgment'),
    says: 'The first message of a stream acknowledges what of it is honoured.',
  },
  {
    id: 'listen.check-filter',
    levels: ['SHOULD'],
    at: subscriptions('acknowledgment'),
    says: 'Clients look at what was acknowledged.',
    unbound: 'client',
  },
  {
    id: 'listen.correlate',
    levels: ['MUST'],
    at: subscriptions('receiving-notifications'),
    says: 'Clients tell streams apart by their ids.',
    unbound: 'client',
  },
  {
    id: 'listen.result',
    levels: ['SHOULD'],
    at: { ...subscriptions('cancellation'), ...subscriptions('graceful-closure') },
    says: 'A stream that the server ends is answered first.',
  },
  {
    id: 'listen.again',
    levels: ['MUST'],
    at: subscriptions('graceful-closure'),
    says: 'Clients listen again after a new connection.',
    unbound: 'client',
  },

  {
    id: 'mrtr.only-way',
    levels: ['MUST'],
    at: mrtr(''),
    says: 'What the server wants to know of the client it asks in a result.',
  },
  {
    id: 'mrtr.state-opaque',
    levels: ['MUST NOT'],
    at: mrtr('inputrequiredresult'),
    says: 'Clients do not look into `requestState`.',
    unbound: 'client',
  },
  {
    id: 'mrtr.methods',
    levels: ['MUST NOT'],
    at: mrtr('supported-requests'),
    says: 'Only `tools/call`, `prompts/get` and `resources/read` may ask for input.',
  },
  {
    id: 'mrtr.keys',
    levels: ['MUST'],
    at: mrtr('server-requirements-basic-workflow'),
    says: 'The keys of questions are unique in a request.',
  },
  {
    id: 'mrtr.kinds',
    levels: ['MUST'],
    at: mrtr('server-requirements-basic-workflow'),
    says: 'A question is an elicitation, a sampling or the roots.',
  },
  {
    id: 'mrtr.state',
    levels: ['MUST', 'MUST', 'MUST'],
    at: mrtr('server-requirements-basic-workflow'),
    says: 'A `requestState` is not trusted: it is authenticated, and refused where that fails.',
  },
  {
    id: 'mrtr.replay',
    levels: ['SHOULD'],
    at: mrtr('server-requirements-basic-workflow'),
    says: 'A state is bound to its user, its time and its request.',
  },
  {
    id: 'mrtr.once',
    levels: ['MUST'],
    at: mrtr('server-requirements-basic-workflow'),
    says: 'What may happen only once is seen to by the server.',
  },
  {
    id: 'mrtr.something',
    levels: ['MUST'],
    at: mrtr('server-requirements-basic-workflow'),
    says: 'An `input_required` result has questions or a state.',
  },
  {
    id: 'mrtr.declared',
    levels: ['MUST NOT', 'MUST NOT'],
    at: mrtr('server-requirements-basic-workflow'),
    says: 'A client is asked only for what it has declared.',
  },
  {
    id: 'mrtr.no-answer',
    levels: ['MUST NOT'],
    at: mrtr('server-requirements-basic-workflow'),
    says: 'A server does not count on answers or retries.',
  },
  {
    id: 'mrtr.clients',
    levels: ['MUST', 'MUST', 'MUST NOT', 'MUST NOT', 'MUST', 'MUST NOT'],
    at: mrtr('client-requirements-basic-workflow'),
    says: 'Clients answer, give the state back as it was, and retry with a new id.',
    unbound: 'client',
  },
  {
    id: 'mrtr.validate',
    levels: ['SHOULD', 'SHOULD'],
    at: mrtr('error-handling'),
    says: 'Answers are checked; what cannot be read is an error of the protocol.',
  },
  {
    id: 'mrtr.unexpected',
    levels: ['SHOULD'],
    at: mrtr('error-handling'),
    says: 'Answers to what was not asked are passed over.',
  },
  {
    id: 'mrtr.missing',
    levels: ['SHOULD'],
    at: mrtr('error-handling'),
    says: 'What was not answered is asked again.',
  },
  {
    id: 'mrtr.security',
    levels: ['MUST'],
    at: mrtr('security-considerations'),
    says: 'The state is validated.',
  },
]

import { type Revision, newest, revisions } from '../protocol/revisions/index.js'

/** From the least to the most severe. */
export const SEVERITIES = ['info', 'warning', 'error'] as const
export type Severity = (typeof SEVERITIES)[number]

/** The page and section of the specification that a rule comes from, or the URL of another standard. */
type Clause = string | ((revision: Revision) => string)

interface Rule {
  severity: Severity
  clause: Clause
  /** Why it is a problem, and what to do about it. */
  why: string
  fix: string
}

const stdio: Clause = ({ lifecycle }) =>
  lifecycle === 'stateless' ? 'basic/transports/stdio' : 'basic/transports#stdio'
/** The oldest revision describes messages on a page of their own. */
const messages = (section: string) => (revision: Revision) =>
  `${revision === revisions[0] ? 'basic/messages' : 'basic'}#${section}`
const JSON_RFC = 'https://www.rfc-editor.org/rfc/rfc8259'

const STDERR_ADVICE = 'Write logs to stderr (console.error), never to stdout.'

/** Every rule by its id. */
export const RULES = {
  'stray-text': {
    severity: 'error',
    clause: stdio,
    why: 'A line is not a JSON-RPC message; stdin and stdout carry nothing else.',
    fix: STDERR_ADVICE,
  },
  'partial-line': {
    severity: 'error',
    clause: stdio,
    why: 'The stream ended before the newline that ends a message.',
    fix: 'Write the newline together with the message, and flush before exiting.',
  },
  'partial-event': {
    severity: 'warning',
    clause:
      'https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation',
    why: 'The event stream ended before the empty line that ends an event; clients discard the event.',
    fix: 'Write two newlines after each event, and flush before ending the response.',
  },
  'carriage-return': {
    severity: 'info',
    clause: stdio,
    why: 'The line ends with CR LF; messages are delimited by newlines (LF).',
    fix: 'Write "\\n" instead of the line ending of the platform.',
  },
  'byte-order-mark': {
    severity: 'warning',
    clause: `${JSON_RFC}#section-8.1`,
    why: 'The stream begins with a byte order mark, which many JSON parsers reject.',
    fix: 'Encode as UTF-8 without a byte order mark.',
  },
  'invalid-utf8': {
    severity: 'error',
    clause: stdio,
    why: 'A byte is not UTF-8, so the message cannot be decoded.',
    fix: 'Encode messages as UTF-8, and write whole characters.',
  },
  'content-length': {
    severity: 'error',
    clause: stdio,
    why: 'The message has a Content-Length header, as in the Language Server Protocol; MCP has one message per line.',
    fix: 'Write each message as one line of JSON without headers.',
  },
  'invalid-header': {
    severity: 'error',
    clause: stdio,
    why: 'In a stream with Content-Length headers, these bytes belong to no message.',
    fix: 'Write each message as one line of JSON without headers.',
  },
  'blank-line': {
    severity: 'info',
    clause: stdio,
    why: 'An empty line is not a message.',
    fix: 'Write exactly one newline after each message.',
  },
  oversized: {
    severity: 'warning',
    clause: stdio,
    why: 'The message is too large to be checked.',
    fix: 'Return large content as a resource, or in pages.',
  },
  'invalid-json': {
    severity: 'error',
    clause: `${JSON_RFC}#section-2`,
    why: 'The message is not JSON.',
    fix: 'Encode each message with a JSON library, on one line.',
  },
  'duplicate-key': {
    severity: 'warning',
    clause: `${JSON_RFC}#section-4`,
    why: 'A name occurs twice in an object; parsers differ in which value they take.',
    fix: 'Write each member once.',
  },
  'unsafe-number': {
    severity: 'warning',
    clause: `${JSON_RFC}#section-6`,
    why: 'The number exceeds what most parsers represent exactly (2^53).',
    fix: 'Send large numbers as strings.',
  },
  'deep-nesting': {
    severity: 'warning',
    clause: `${JSON_RFC}#section-9`,
    why: 'The message is nested too deeply, or has too many values, to be checked; parsers may reject it.',
    fix: 'Use flatter or smaller structures.',
  },
  'wrong-version': {
    severity: 'error',
    clause: messages('requests'),
    why: 'The member "jsonrpc" is not "2.0".',
    fix: 'Set "jsonrpc": "2.0" in every message.',
  },
  'invalid-message': {
    severity: 'error',
    clause: messages('responses'),
    why: 'It is no JSON-RPC message: that has a "method", or either a "result" or an "error".',
    fix: 'Send requests, notifications and responses only.',
  },
  'invalid-id': {
    severity: 'error',
    clause: messages('requests'),
    why: 'The id of a request must be a string or an integer.',
    fix: 'Use integers that count up, or strings.',
  },
  'reused-id': {
    severity: 'error',
    clause: messages('requests'),
    why: 'The id was used by an earlier request of the same sender.',
    fix: 'Use a new id for each request.',
  },
  'orphan-response': {
    severity: 'error',
    clause: messages('responses'),
    why: 'No request has this id.',
    fix: 'Return the id of the request unchanged, with its type.',
  },
  'duplicate-response': {
    severity: 'error',
    clause: messages('responses'),
    why: 'The request was answered before.',
    fix: 'Send exactly one response to each request.',
  },
  'unanswered-request': {
    severity: 'info',
    clause: messages('responses'),
    why: 'The capture ended before the request was answered.',
    fix: 'Answer every request, also before exiting.',
  },
  batch: {
    severity: 'error',
    clause: messages('requests'),
    why: 'The message is a batch, which this revision of the protocol does not have.',
    fix: 'Send one message per line.',
  },
  'unknown-revision': {
    severity: 'warning',
    clause: 'basic/versioning',
    why: 'The protocol version is not one of the published revisions, so messages are not checked against a schema.',
    fix: 'Use a published revision.',
  },
  'before-initialized': {
    severity: 'warning',
    clause: 'basic/lifecycle#initialization',
    why: 'The request was sent before initialization was complete; only ping is allowed then.',
    fix: 'Wait for the response to initialize (client) or for notifications/initialized (server).',
  },
  'undeclared-capability': {
    severity: 'warning',
    clause: ({ lifecycle }) =>
      lifecycle === 'stateless' ? 'basic#meta' : 'basic/lifecycle#capability-negotiation',
    why: 'The receiver has not declared the capability that this method needs.',
    fix: 'Check the capabilities of the other side before sending the request.',
  },
  'server-request': {
    severity: 'error',
    clause: stdio,
    why: 'A server must not send requests in this revision.',
    fix: 'Return a result with resultType "input_required" instead.',
  },
  'wrong-revision': {
    severity: 'warning',
    clause: 'schema',
    why: 'The method belongs to another revision of the protocol.',
    fix: 'Use the methods of the negotiated revision.',
  },
  schema: {
    severity: 'error',
    clause: 'schema',
    why: 'The message does not match the schema of its revision.',
    fix: 'Send the members that the schema requires, with their types.',
  },
  'long-tool-name': {
    severity: 'warning',
    clause: 'server/tools#tool-names',
    why: 'The name of the tool has more than 64 characters, which several hosts reject.',
    fix: 'Shorten the name; hosts add a prefix to it.',
  },
} as const satisfies Record<string, Rule>

export type RuleId = keyof typeof RULES

/** The URL of a rule's clause, in the revision of the message. */
export function clauseUrl(rule: RuleId, revision: Revision = newest): string {
  const { clause }: Rule = RULES[rule]
  const page = typeof clause === 'string' ? clause : clause(revision)
  return page.startsWith('https:')
    ? page
    : `https://modelcontextprotocol.io/specification/${revision.id}/${page}`
}

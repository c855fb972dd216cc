import { JSON_RFC, type Rule, STDIO } from './clauses.js'

/** Rules about bytes and JSON. */
export const WIRE_RULES = {
  'stray-text': {
    severity: 'error',
    clause: STDIO,
    why: 'A line is not a JSON-RPC message; stdin and stdout carry nothing else.',
    fix: 'Write logs to stderr (console.error), never to stdout.',
  },
  'partial-line': {
    severity: 'error',
    clause: STDIO,
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
    clause: STDIO,
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
    clause: STDIO,
    why: 'A byte is not UTF-8, so the message cannot be decoded.',
    fix: 'Encode messages as UTF-8, and write whole characters.',
  },
  'content-length': {
    severity: 'error',
    clause: STDIO,
    why: 'The message has a Content-Length header, as in the Language Server Protocol; MCP has one message per line.',
    fix: 'Write each message as one line of JSON without headers.',
  },
  'invalid-header': {
    severity: 'error',
    clause: STDIO,
    why: 'In a stream with Content-Length headers, these bytes belong to no message.',
    fix: 'Write each message as one line of JSON without headers.',
  },
  'blank-line': {
    severity: 'info',
    clause: STDIO,
    why: 'An empty line is not a message.',
    fix: 'Write exactly one newline after each message.',
  },
  oversized: {
    severity: 'warning',
    clause: STDIO,
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
} as const satisfies Record<string, Rule>

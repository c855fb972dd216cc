import { JSON_RPC, type Rule, messages, moved, newestPage } from './clauses.js'

const SHUTDOWN = moved('basic/lifecycle#shutdown', 'basic/transports/stdio#shutdown')
const ORIGIN = moved(
  'basic/transports#security-warning',
  'basic/transports/streamable-http#security-%26-endpoint',
)

/** Rules about what a server does when it is probed. */
export const PROBE_RULES = {
  'no-response': {
    severity: 'error',
    clause: messages('responses'),
    why: 'The server did not respond to a request in time.',
    fix: 'Send a response, or an error, for every request; go on reading after invalid input.',
  },
  crash: {
    severity: 'error',
    clause: moved('basic/lifecycle#operation', 'basic/transports/stdio#unexpected-termination'),
    why: 'The server exited, or closed its output, while the client was still connected.',
    fix: 'Handle the failure, and go on serving; stderr may say what happened.',
  },
  'fatal-input': {
    severity: 'warning',
    clause: `${JSON_RPC}#error_object`,
    why: 'After a message that is not JSON, or not JSON-RPC, the server no longer responds; JSON-RPC has errors for that (-32700, -32600).',
    fix: 'Return the error, or skip the line, and go on with the next one.',
  },
  inconsistent: {
    severity: 'error',
    clause: moved('basic/utilities/ping#behavior-requirements', 'basic#statelessness'),
    why: 'After another message, the server returned an error for a request that it must always serve.',
    fix: 'Do not let earlier requests, or invalid input, change how a request is served.',
  },
  'excessive-output': {
    severity: 'error',
    clause: moved('basic/transports#stdio', 'basic/transports/stdio'),
    why: 'The server sent more than the check reads; the connection was ended.',
    fix: 'Use pages for long lists, and write logs to stderr.',
  },
  'failed-ping': {
    severity: 'error',
    clause: 'basic/utilities/ping#behavior-requirements',
    why: 'The response to a ping must be an empty result.',
    fix: 'Answer ping with {}; hosts terminate servers that do not.',
  },
  'failed-list': {
    severity: 'error',
    clause: moved('basic/lifecycle#capability-negotiation', 'server/discover#response'),
    why: 'The server has declared a capability, but returns an error for its list.',
    fix: 'Serve the method, or do not declare the capability.',
  },
  'unknown-method-result': {
    severity: 'error',
    clause: `${JSON_RPC}#response_object`,
    why: 'The server returned a result for a method that does not exist.',
    fix: 'Return the error -32601 (Method not found).',
  },
  'unknown-method-code': {
    severity: 'warning',
    clause: `${JSON_RPC}#error_object`,
    why: 'The error for a method that does not exist is not -32601, by which clients detect what a server supports.',
    fix: 'Return the error -32601 (Method not found).',
  },
  'unknown-tool-result': {
    severity: 'error',
    clause: 'server/tools#error-handling',
    why: 'The server returned a successful result for a tool that does not exist.',
    fix: 'Return the error -32602, or a result with isError.',
  },
  'unknown-tool-error': {
    severity: 'info',
    clause: 'server/tools#error-handling',
    why: 'The specification has JSON-RPC errors for unknown tools; the server returned a result with isError, which is for errors while a tool runs.',
    fix: 'Return the error -32602.',
  },
  'inexact-id': {
    severity: 'info',
    clause: messages('responses'),
    why: 'A request with an id beyond 2^53 got no response with that id; many JSON parsers cannot keep such a number.',
    fix: 'Return the id as it was written, if clients use such ids.',
  },
  'lost-at-end': {
    severity: 'info',
    clause: SHUTDOWN,
    why: 'Requests were in progress when the input of the server ended, and got no response; the specification leaves that open, but clients that pipe requests lose results.',
    fix: 'Finish requests in progress, then exit.',
  },
  'runs-after-end': {
    severity: 'warning',
    clause: SHUTDOWN,
    why: 'The server did not exit when its input ended; hosts leave such processes behind, or kill them.',
    fix: 'Exit when stdin ends.',
  },
  'ignores-sigterm': {
    severity: 'warning',
    clause: SHUTDOWN,
    why: 'The server did not exit on SIGTERM.',
    fix: 'Exit on SIGTERM; a handler for it must exit, too.',
  },
  'slow-start': {
    severity: 'info',
    clause: moved('basic/lifecycle#initialization', 'server/discover'),
    why: 'The first response came late; some hosts give up after five seconds.',
    fix: 'Defer loading what the first response does not need.',
  },
  'http-status': {
    severity: 'error',
    clause: moved(
      'basic/transports#sending-messages-to-the-server',
      'basic/transports/streamable-http#sending-messages',
    ),
    why: 'The HTTP status, or the content type, is not what the transport requires here.',
    fix: 'Respond to a request with application/json or text/event-stream, and to a notification with status 202 and no body.',
  },
  'version-header': {
    severity: 'warning',
    clause: moved(
      'basic/transports#protocol-version-header',
      'basic/transports/streamable-http#protocol-version-header',
    ),
    why: 'The server accepted a request with an invalid MCP-Protocol-Version, which it must reject with status 400.',
    fix: 'Check the header of every request.',
  },
  'header-not-checked': {
    severity: 'error',
    clause: newestPage('basic/transports/streamable-http#server-validation'),
    why: 'The server accepted a request whose headers contradict its body.',
    fix: 'Compare the headers with the body, and respond with status 400 and the error -32020.',
  },
  'origin-not-checked': {
    severity: 'warning',
    clause: ORIGIN,
    why: 'A server on this machine accepted a request with the Origin of a foreign web site; servers must validate it, since pages in a browser can send such requests.',
    fix: 'Reject foreign origins with status 403.',
  },
  'only-host-checked': {
    severity: 'info',
    clause: ORIGIN,
    why: 'A server on this machine rejects a foreign Host, which prevents DNS rebinding, but accepts a foreign Origin, which servers must validate, too.',
    fix: 'Reject foreign origins with status 403.',
  },
  'expected-tool': {
    severity: 'error',
    clause: '',
    why: 'The server does not list a tool that --expect-tool names.',
    fix: 'Offer the tool, or remove the option.',
  },
  'tools-budget': {
    severity: 'error',
    clause: '',
    why: 'The definitions of the tools are larger than --max-tools-bytes allows.',
    fix: 'Shorten descriptions and schemas, or offer fewer tools.',
  },
  'latency-budget': {
    severity: 'error',
    clause: '',
    why: 'The 95th percentile of the durations is above --p95.',
    fix: 'Make the method faster, or raise the limit.',
  },
  'changed-definition': {
    severity: 'error',
    clause: '',
    why: 'A definition differs from the lock file.',
    fix: 'Review the change; if it is intended, run the check with --update-lock.',
  },
} as const satisfies Record<string, Rule>

import {
  type Rule,
  SCHEMA,
  STDIO,
  TOOL_NAMES,
  handshakePage,
  messages,
  moved,
  newestPage,
} from './clauses.js'

/** Rules of JSON-RPC and MCP about messages. */
export const PROTOCOL_RULES = {
  'wrong-version': {
    severity: 'error',
    clause: messages('requests'),
    why: 'The member "jsonrpc" is not "2.0".',
    fix: 'Set "jsonrpc": "2.0" in every message.',
  },
  'invalid-message': {
    severity: 'error',
    clause: messages('responses'),
    why: 'It is not a JSON-RPC message, which has a "method", or either a "result" or an "error".',
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
    clause: moved(
      'basic/lifecycle#version-negotiation',
      'basic/versioning#protocol-version-negotiation',
    ),
    why: 'The protocol version is not one of the published revisions, so messages are not checked against a schema.',
    fix: 'Use a published revision.',
  },
  'before-initialized': {
    severity: 'warning',
    clause: handshakePage('basic/lifecycle#initialization'),
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
    clause: STDIO,
    why: 'A server must not send requests in this revision.',
    fix: 'Return a result with resultType "input_required" instead.',
  },
  'wrong-revision': {
    severity: 'warning',
    clause: SCHEMA,
    why: 'The method belongs to another revision of the protocol.',
    fix: 'Use the methods of the negotiated revision.',
  },
  schema: {
    severity: 'error',
    clause: SCHEMA,
    why: 'The message does not match the schema of its revision.',
    fix: 'Send the members that the schema requires, with their types.',
  },
  'invalid-error': {
    severity: 'error',
    clause: messages('responses'),
    why: 'An error must have an integer "code" and a string "message".',
    fix: 'Send both, with these types.',
  },
  'late-response': {
    severity: 'info',
    clause: moved(
      'basic/utilities/cancellation#behavior-requirements',
      'basic/patterns/cancellation#behavior-requirements',
    ),
    why: 'The response was sent after the request had been cancelled; the notification may have crossed it.',
    fix: 'Stop the work on a cancelled request, and send nothing more for it.',
  },
  progress: {
    severity: 'warning',
    clause: moved('basic/utilities/progress', 'basic/patterns/progress'),
    why: 'Progress must name the token of a request in progress, and must increase.',
    fix: 'Take the token from the _meta of the request, and stop before the response.',
  },
  'undeclared-notification': {
    severity: 'warning',
    clause: moved('basic/lifecycle#capability-negotiation', 'server/discover#response'),
    why: 'The sender has not declared the capability that this notification belongs to.',
    fix: 'Declare the capability, such as "tools": { "listChanged": true } or "logging": {}.',
  },
  'output-schema': {
    severity: 'error',
    clause: 'server/tools#output-schema',
    why: 'The structured content of the result does not match the output schema of the tool.',
    fix: 'Return structuredContent that the schema allows, or an error with isError.',
  },
  'missing-meta': {
    severity: 'error',
    clause: newestPage('basic#meta'),
    why: 'The request lacks a required member of _meta; servers must reject it.',
    fix: 'Send io.modelcontextprotocol/protocolVersion and io.modelcontextprotocol/clientCapabilities with every request.',
  },
  'result-type': {
    severity: 'error',
    clause: newestPage('basic#resulttype'),
    why: 'The result has no "resultType".',
    fix: 'Send "resultType": "complete" with every result.',
  },
  'cache-hints': {
    severity: 'error',
    clause: newestPage('server/utilities/caching#cacheable-results'),
    why: 'The result must have caching hints: "ttlMs" (an integer of at least 0) and "cacheScope" ("public" or "private"); a request for input must have none.',
    fix: 'Send both with the results of lists, resources/read and server/discover.',
  },
  acknowledgement: {
    severity: 'error',
    clause: newestPage('basic/patterns/subscriptions#acknowledgment'),
    why: 'The first message of a subscription must be notifications/subscriptions/acknowledged.',
    fix: 'Acknowledge the subscription before any other notification of it.',
  },
  'unrequested-notification': {
    severity: 'error',
    clause: newestPage('basic/patterns/subscriptions#opening-a-stream'),
    why: 'The client has not requested this notification.',
    fix: 'Send only what the filter of subscriptions/listen names, with the id of the subscription in _meta.',
  },
  'unrequested-log': {
    severity: 'error',
    clause: newestPage('server/utilities/logging#per-request-log-level'),
    why: 'No request has asked for log messages.',
    fix: 'Send notifications/message only for a request with io.modelcontextprotocol/logLevel in its _meta.',
  },
  'request-state': {
    severity: 'error',
    clause: newestPage('basic/patterns/mrtr#client-requirements-basic-workflow'),
    why: 'The server has not sent this requestState for this method; clients must return it unchanged.',
    fix: 'Repeat the requestState of the result, character by character.',
  },
  'retry-id': {
    severity: 'error',
    clause: newestPage('basic/patterns/mrtr#client-requirements-basic-workflow'),
    why: 'The retry has the id of the request that it continues; they must differ.',
    fix: 'Use a new id for each retry.',
  },
  'undeclared-input': {
    severity: 'error',
    clause: newestPage('basic/patterns/mrtr#server-requirements-basic-workflow'),
    why: 'The client has not declared that it can answer this.',
    fix: 'Return the error -32021 if a required capability is missing from the _meta of the request.',
  },
  'unexpected-input-required': {
    severity: 'error',
    clause: newestPage('basic/patterns/mrtr#supported-requests'),
    why: 'Only prompts/get, resources/read and tools/call may return a result of type "input_required".',
    fix: 'Complete the request, or return an error.',
  },
  'reserved-error-code': {
    severity: 'error',
    clause: newestPage('basic#error-codes'),
    why: 'The error code is reserved by the specification and has no such meaning in this revision.',
    fix: 'Use a code that the specification defines, or one outside of the range that JSON-RPC reserves.',
  },
  'header-mismatch': {
    severity: 'error',
    clause: newestPage('basic/transports/streamable-http#server-validation'),
    why: 'An HTTP header does not match the body, or is missing; servers must reject the request.',
    fix: 'Derive MCP-Protocol-Version, Mcp-Method, Mcp-Name and Mcp-Param-* from the body.',
  },
} as const satisfies Record<string, Rule>

/** Rules about the definitions of a server. */
export const DEFINITION_RULES = {
  'long-tool-name': {
    severity: 'warning',
    clause: TOOL_NAMES,
    why: 'The name of the tool has more than 64 characters, which several hosts reject.',
    fix: 'Shorten the name; hosts add a prefix to it.',
  },
  'tool-name': {
    severity: 'warning',
    clause: TOOL_NAMES,
    why: 'The name of the tool has characters other than letters, digits, "_", "-" and ".", which several hosts reject.',
    fix: 'Use letters, digits, "_" and "-".',
  },
  'duplicate-name': {
    severity: 'warning',
    clause: TOOL_NAMES,
    why: 'Two tools of the list have this name; only one of them can be called.',
    fix: 'Give each tool a name of its own.',
  },
  'invalid-schema': {
    severity: 'error',
    clause: 'server/tools#tool',
    why: 'The schema of the tool is not a valid JSON Schema; hosts may drop the tool, or the whole list.',
    fix: 'Correct the schema; an input schema is an object with "type": "object".',
  },
  'refused-schema': {
    severity: 'warning',
    clause: 'server/tools#tool',
    why: 'The input schema of the tool is valid, but providers of models are known to refuse it, and then often all tools of the request.',
    fix: 'Use "type": "object" with "properties" at the top, simple property names, "items" for arrays, and references within the schema only.',
  },
  'not-validated': {
    severity: 'info',
    clause: '',
    why: 'A schema of the tool is too costly to be checked or applied, here or at all: validations may only take time in proportion to what was read.',
    fix: 'Simplify the schema: fewer alternatives, shorter patterns.',
  },
  'large-definitions': {
    severity: 'info',
    clause: 'server/tools#listing-tools',
    why: 'Hosts send the definitions of all tools to the model, usually with every request.',
    fix: 'Shorten descriptions and schemas, or offer fewer tools.',
  },
  'unused-tools': {
    severity: 'info',
    clause: 'server/tools#listing-tools',
    why: 'Tools were listed, and paid for in the context of the model, but never called in this capture.',
    fix: 'Offer fewer tools, if that is typical.',
  },
} as const satisfies Record<string, Rule>

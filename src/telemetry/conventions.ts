/*
 * Names of OpenTelemetry's semantic conventions for MCP, whose status is Development. They are written here and not
 * imported, so that they change when this package does.
 * https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/mcp.md
 */

export const METHOD_NAME = 'mcp.method.name'
export const PROTOCOL_VERSION = 'mcp.protocol.version'
export const SESSION_ID = 'mcp.session.id'
export const RESOURCE_URI = 'mcp.resource.uri'
export const TOOL_NAME = 'gen_ai.tool.name'
export const TOOL_ARGUMENTS = 'gen_ai.tool.call.arguments'
export const TOOL_RESULT = 'gen_ai.tool.call.result'
export const PROMPT_NAME = 'gen_ai.prompt.name'
export const OPERATION_NAME = 'gen_ai.operation.name'
export const EXECUTE_TOOL = 'execute_tool'
export const REQUEST_ID = 'jsonrpc.request.id'
export const STATUS_CODE = 'rpc.response.status_code'
export const ERROR_TYPE = 'error.type'
export const TOOL_ERROR = 'tool_error'
export const NETWORK_TRANSPORT = 'network.transport'
export const NETWORK_PROTOCOL = 'network.protocol.name'
export const CLIENT_ADDRESS = 'client.address'
export const CLIENT_PORT = 'client.port'
export const SERVER_ADDRESS = 'server.address'
export const SERVER_PORT = 'server.port'

/** A value that is not recorded as it is. */
export const OTHER = '_OTHER'

/* What the conventions have no name for. */

export const METHOD_ORIGINAL = 'ccmcp.method.name_original'
export const RESULT_TYPE = 'ccmcp.result.type'
export const TASK_NAME = 'ccmcp.task.name'
export const TASK_ATTEMPT = 'ccmcp.task.attempt'
export const STEP_KEY = 'ccmcp.step.key'

/** Upper bounds in seconds, as the conventions say. */
export const BOUNDARIES: readonly number[] = [
  0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300,
]

/** Durations in seconds. */
export const HISTOGRAMS = {
  'mcp.server.operation.duration':
    'Duration of a received MCP request or notification, until its response is sent.',
  'mcp.client.operation.duration':
    'Duration of a sent MCP request, until its response is received.',
  'mcp.server.session.duration': 'Duration of an MCP session, as the server observed it.',
  'mcp.client.session.duration': 'Duration of an MCP session, as the client observed it.',
  'ccmcp.task.duration': 'Duration of one run of the handler of a task.',
} as const
export type Histogram = keyof typeof HISTOGRAMS

/** What is in progress now: the unit, and a description. */
export const GAUGES = {
  'ccmcp.server.active_requests': ['{request}', 'Received MCP requests in progress.'],
  'ccmcp.client.active_requests': ['{request}', 'Sent MCP requests without a response.'],
  'ccmcp.server.active_sessions': ['{session}', 'MCP sessions of the server.'],
  'ccmcp.client.active_sessions': ['{session}', 'MCP sessions of the client.'],
  'ccmcp.active_tasks': ['{task}', 'Handlers of tasks that are running.'],
} as const
export type Gauge = keyof typeof GAUGES

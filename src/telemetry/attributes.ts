import { RpcError } from '../jsonrpc/errors.js'
import { type Params, isObject } from '../jsonrpc/message.js'
import { truncate } from '../jsonrpc/truncate.js'
import type { Operation, Outcome } from '../protocol/telemetry.js'
import * as name from './conventions.js'

export type Attributes = Record<string, string | number>

/** Maximum characters of an attribute, and of a URI. */
const MAX_VALUE = 256
const MAX_URI = 1024

/** What a request is about. */
export interface Subject {
  readonly tool?: string
  readonly prompt?: string
  readonly uri?: string
}

const WITH_URI: ReadonlySet<string> = new Set([
  'resources/read',
  'resources/subscribe',
  'resources/unsubscribe',
  'notifications/resources/updated',
])

export function subjectOf(method: string, params: Params | undefined): Subject {
  const { name: given, uri } = params ?? {}
  if (typeof given === 'string') {
    if (method === 'tools/call') return { tool: bounded(given) }
    if (method === 'prompts/get') return { prompt: bounded(given) }
  }
  return typeof uri === 'string' && WITH_URI.has(method) ? { uri: bounded(uri, MAX_URI) } : {}
}

/** The name of a span: nothing in it is chosen by a peer. */
export function spanNameOf(operation: Operation, { tool, prompt }: Subject): string {
  const target = operation.knownTarget ? (tool ?? prompt) : undefined
  const method = methodOf(operation)
  return target === undefined ? method : `${method} ${target}`
}

export function methodOf({ method, knownMethod }: Operation): string {
  return knownMethod ? method : name.OTHER
}

/** The attributes of a span that are known when it begins. */
export function spanAttributes(operation: Operation, subject: Subject): Attributes {
  const { method, knownMethod, id, client } = operation
  const { tool, prompt, uri } = subject
  const attributes: Attributes = { [name.METHOD_NAME]: methodOf(operation) }
  if (!knownMethod) attributes[name.METHOD_ORIGINAL] = bounded(method)
  if (id !== undefined) attributes[name.REQUEST_ID] = bounded(String(id))
  if (tool !== undefined) {
    attributes[name.TOOL_NAME] = tool
    attributes[name.OPERATION_NAME] = name.EXECUTE_TOOL
  }
  if (prompt !== undefined) attributes[name.PROMPT_NAME] = prompt
  if (uri !== undefined) attributes[name.RESOURCE_URI] = uri
  if (client !== undefined) {
    attributes[name.CLIENT_ADDRESS] = bounded(client.address)
    if (client.port !== undefined) attributes[name.CLIENT_PORT] = client.port
  }
  return { ...attributes, ...connectionAttributes(operation), ...sessionAttributes(operation) }
}

/** The revision and the session: those of `initialize` are known when it ends. */
export function sessionAttributes({
  revision,
  connection,
}: Pick<Operation, 'revision' | 'connection'>): Attributes {
  const attributes: Attributes = {}
  if (revision !== undefined) attributes[name.PROTOCOL_VERSION] = revision
  if (connection?.session !== undefined) attributes[name.SESSION_ID] = bounded(connection.session)
  return attributes
}

export function connectionAttributes({ connection }: Pick<Operation, 'connection'>): Attributes {
  const attributes: Attributes = {}
  if (connection === undefined) return attributes
  attributes[name.NETWORK_TRANSPORT] = connection.transport
  if (connection.protocol !== undefined) attributes[name.NETWORK_PROTOCOL] = connection.protocol
  if (connection.server !== undefined) {
    attributes[name.SERVER_ADDRESS] = bounded(connection.server.address)
    if (connection.server.port !== undefined) attributes[name.SERVER_PORT] = connection.server.port
  }
  return attributes
}

export interface Failure {
  /** `error.type`. */
  readonly type: string
  /** The code of a JSON-RPC error. */
  readonly code?: string
  readonly message?: string
}

/** Why something has failed; undefined if it has not. */
export function failureOf({ result, error }: Outcome): Failure | undefined {
  if (error === undefined)
    return isObject(result) && result['isError'] === true ? { type: name.TOOL_ERROR } : undefined
  try {
    return describe(error)
  } catch {
    // What was thrown has getters that throw.
    return { type: name.OTHER }
  }
}

function describe(error: unknown): Failure {
  if (!(error instanceof Error)) return { type: name.OTHER }
  const message = bounded(String(error.message))
  if (error instanceof RpcError) {
    const code = bounded(String(error.code))
    return { type: code, code, message }
  }
  const code = 'code' in error ? error.code : undefined
  return { type: bounded(typeof code === 'string' ? code : String(error.name)), message }
}

/** `input_required`, `task`: what a result is, if it is not complete. */
export function resultTypeOf({ result }: Outcome): string | undefined {
  const type = isObject(result) ? result['resultType'] : undefined
  return typeof type === 'string' && type !== 'complete' ? bounded(type) : undefined
}

export function bounded(text: string, max = MAX_VALUE): string {
  return truncate(text, max)
}

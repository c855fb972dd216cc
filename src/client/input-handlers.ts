import { INVALID_PARAMS, METHOD_NOT_FOUND, RpcError } from '../jsonrpc/errors.js'
import { type Params, isObject } from '../jsonrpc/message.js'
import { truncate, truncateJson } from '../jsonrpc/truncate.js'
import type {
  CreateMessageParams,
  CreateMessageResult,
  ElicitParams,
  ElicitResult,
  Root,
} from '../protocol/model.js'
import type { Revision } from '../protocol/revisions/index.js'
import {
  projectSamplingResult,
  projectElicitResult,
  projectRoot,
} from '../protocol/revisions/project.js'
import { untilAborted } from './until-aborted.js'

interface InputContext {
  /** Fires when the answer is no longer needed. */
  signal: AbortSignal
}

/** How the client answers requests of servers. The capability is declared for those that are given. */
export interface InputHandlers {
  /** Completes messages with the client's model. Users should see what is sent to it. */
  sample?: (
    params: CreateMessageParams,
    context: InputContext,
  ) => CreateMessageResult | Promise<CreateMessageResult>
  /** Shows the user a form (`requestedSchema`) or a URL (`mode: 'url'`). */
  elicit?: (params: ElicitParams, context: InputContext) => ElicitResult | Promise<ElicitResult>
  /** Returns the directories that the user works in. */
  roots?: (context: InputContext) => readonly Root[] | Promise<readonly Root[]>
}

/** The client capabilities for these handlers. */
export function capabilitiesOf({ sample, elicit, roots }: InputHandlers): Params {
  return {
    ...(sample === undefined ? {} : { sampling: { tools: {} } }),
    ...(elicit === undefined ? {} : { elicitation: { form: {}, url: {} } }),
    ...(roots === undefined ? {} : { roots: {} }),
  }
}

/** The handlers, with an elicitation refused if its mode is not one of the declared. */
export function declaredHandlers(handlers: InputHandlers, { elicitation }: Params): InputHandlers {
  const { elicit } = handlers
  // Without a mode, an empty capability means forms.
  const declared = isObject(elicitation) ? { form: {}, ...elicitation } : {}
  if (elicit === undefined || ('form' in declared && 'url' in declared)) return handlers
  return {
    ...handlers,
    elicit(params, context) {
      if (params.mode in declared) return elicit(params, context)
      throw invalidParams(`this client has not declared elicitation in "mode" ${params.mode}`)
    },
  }
}

/** Answers one request of a server. An error goes to the server. */
export async function handleServerRequest(
  { sample, elicit, roots }: InputHandlers,
  revision: Revision | undefined,
  method: string,
  params: Params,
  signal: AbortSignal,
): Promise<object> {
  if (method === 'sampling/createMessage' && sample !== undefined)
    return projectSamplingResult(revision, await sample(samplingParams(params), { signal }))
  if (method === 'elicitation/create' && elicit !== undefined)
    return projectElicitResult(revision, await elicit(elicitParams(revision, params), { signal }))
  if (method === 'roots/list' && roots !== undefined) {
    const found = await roots({ signal })
    return { roots: found.map((root) => projectRoot(revision, checkRoot(root))) }
  }
  throw unknownMethod(method)
}

/** https://modelcontextprotocol.io/specification/2026-07-28/client/roots#root */
function checkRoot(root: Root): Root {
  if (root.uri.startsWith('file://')) return root
  throw new TypeError(
    `roots: the URI of a root must begin with file://, not ${truncateJson(root.uri)}`,
  )
}

function samplingParams(params: Params): CreateMessageParams {
  if (!Array.isArray(params['messages'])) throw invalidParams('"messages" must be an array')
  return params as unknown as CreateMessageParams // the other members are not checked
}

function elicitParams(revision: Revision | undefined, params: Params): ElicitParams {
  const { mode = 'form', message } = params
  if (typeof message !== 'string') throw invalidParams('"message" must be a string')
  if (mode !== 'form' && mode !== 'url') throw invalidParams('"mode" must be "form" or "url"')
  if (mode === 'url' && revision?.urlElicitation === 'none')
    throw invalidParams(`protocol revision ${revision.id} has no "mode" url`)
  return { ...params, mode } as unknown as ElicitParams // the other members are not checked
}

function invalidParams(problem: string): RpcError {
  return new RpcError(INVALID_PARAMS, `Invalid params: ${problem}`)
}

export function unknownMethod(method: string): RpcError {
  return new RpcError(METHOD_NOT_FOUND, `Method not found: ${truncate(method)}`)
}

/** Answers the input requests of a result. Returns the params to add when the request is sent again. */
export async function resolveInputRequests(
  handlers: InputHandlers,
  revision: Revision,
  method: string,
  { inputRequests, requestState }: Params,
  given: AbortSignal,
): Promise<Params> {
  const state = requestState === undefined ? {} : { requestState }
  if (inputRequests === undefined) return state
  if (!isObject(inputRequests))
    throw new TypeError(`The response to ${method} has "inputRequests" that is not an object`)
  given.throwIfAborted()
  // When one of them fails, the others are aborted.
  const controller = new AbortController()
  const signal = AbortSignal.any([given, controller.signal])
  const entries = Object.entries(inputRequests).map(async ([key, request]) => {
    if (!isObject(request) || typeof request['method'] !== 'string')
      throw new TypeError(
        `The response to ${method} has an input request "${truncate(key)}" without a method`,
      )
    const params = isObject(request['params']) ? request['params'] : {}
    try {
      return [
        key,
        await handleServerRequest(handlers, revision, request['method'], params, signal),
      ] as const
    } catch (error) {
      if (!(error instanceof RpcError && error.code === METHOD_NOT_FOUND)) throw error
      throw new TypeError(
        `${method} needs input that this client cannot give: "${truncate(key)}" (${truncate(request['method'])})`,
        {
          cause: error,
        },
      )
    }
  })
  try {
    const responses = await untilAborted(Promise.all(entries), given)
    return { inputResponses: Object.fromEntries(responses), ...state }
  } catch (error) {
    controller.abort(error)
    throw error
  }
}

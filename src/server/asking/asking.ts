import { RpcError } from '../../jsonrpc/errors.js'
import type { IncomingRequest } from '../../jsonrpc/incoming.js'
import type { Params } from '../../jsonrpc/message.js'
import type { Implementation } from '../../protocol/model.js'
import type { Revision } from '../../protocol/revisions/index.js'
import { addResultFields } from '../../protocol/revisions/project.js'
import type { AskContext, Asking, Binding } from '../ask.js'
import type { AskingCall, Caller, ClientContext } from '../call.js'
import type { InternalServer } from '../context.js'
import { findResource } from '../features/resources.js'
import { AskByRequest } from './ask-by-request.js'
import { AskByResult, type Suspend } from './ask-by-result.js'
import { digest, encryptState } from './state.js'

/** How a live call asks its client in its revision. */
export function askingOf(
  server: InternalServer,
  incoming: IncomingRequest,
  connection: ClientContext,
  call: AskingCall,
): Asking {
  const context = new LiveAskContext(server, incoming, connection, call)
  return context.revision.asksBy === 'request'
    ? new AskByRequest(context)
    : new AskByResult(context, endRequest(context))
}

/** Resumes a call that ended with `input_required`. */
export function resume(
  server: InternalServer,
  incoming: IncomingRequest,
  connection: ClientContext,
  call: AskingCall,
  params: Params,
): Promise<Asking> {
  const context = new LiveAskContext(server, incoming, connection, call)
  return AskByResult.resume(context, endRequest(context), params)
}

/** Ends a live request with `input_required`; its client keeps what is needed to run it again. */
function endRequest(context: AskContext): Suspend {
  const { incoming, revision, server, state } = context
  return async (suspension) => {
    if (suspension instanceof RpcError) return incoming.settle({ error: suspension })
    const { questions, ...recorded } = suspension
    const asked = [...questions]
    const requestState = await encryptState(context, {
      id: crypto.randomUUID(),
      expires: Date.now() + state.ttl,
      binding: await digest(context.binding),
      asked: Object.fromEntries(asked.map(([key, each]) => [key, each.digest])),
      ...recorded,
    })
    const inputRequests = Object.fromEntries(
      asked.map(
        ([
          key,
          {
            request: { method, params },
          },
        ]) => [key, { method, params }],
      ),
    )
    const result = { resultType: 'input_required', inputRequests, requestState }
    incoming.settle({ result: addResultFields(revision, result, server, undefined) })
  }
}

/** What a live call needs to ask its client. A class: each object literal with a getter gets a hidden class of its own. */
class LiveAskContext implements AskContext {
  readonly incoming: IncomingRequest
  readonly #server: InternalServer
  readonly #connection: ClientContext
  readonly #call: AskingCall
  /** Made when it is first needed: it parses the request again. */
  #binding: Binding | undefined

  constructor(
    server: InternalServer,
    incoming: IncomingRequest,
    connection: ClientContext,
    call: AskingCall,
  ) {
    this.incoming = incoming
    this.#server = server
    this.#connection = connection
    this.#call = call
  }

  get key(): string {
    return this.#call.key
  }

  /** Read when it is needed: a call that is resumed gets its timeout later. */
  get signal(): AbortSignal {
    return this.#call.signal
  }

  get revision(): Revision {
    return this.#connection.revision
  }

  get mayAsk(): boolean {
    return this.#server.methods.get(this.incoming.request.method)?.mayRequireInput === true
  }

  get capabilities(): Caller['capabilities'] {
    return this.#connection.caller.capabilities
  }

  get binding(): Binding {
    this.#binding ??= bindingOf(this.#server, this.incoming, this.#connection)
    return this.#binding
  }

  get state(): AskContext['state'] {
    return { ...this.#server.state, cipher: this.#server.cipher }
  }

  get server(): Implementation {
    return this.#server.info
  }

  waiting<Value>(promise: Promise<Value>): Promise<Value> {
    return this.#call.waiting(promise)
  }
}

function bindingOf(
  server: InternalServer,
  { request }: IncomingRequest,
  connection: ClientContext,
): Binding {
  // Parsed again: a handler may have changed its arguments.
  const { params = {} } = JSON.parse(request.frame) as { params?: Params } // it has been read before
  const { arguments: given = {} } = params
  const { nameParam = '', capability } = server.methods.get(request.method) ?? {}
  const named = params[nameParam]
  const target = typeof named === 'string' ? named : JSON.stringify(named ?? null)
  return {
    principal: connection.caller.principal?.id ?? '',
    method: request.method,
    name: target,
    arguments: given,
    definition: `${server.info.name} ${server.info.version} ${definitionOf(server, capability, target)}`,
  }
}

/** The listing of a definition, and the source of its handler. */
function definitionOf(
  server: InternalServer,
  capability: string | undefined,
  name: string,
): string {
  if (capability === 'tools') {
    const tool = server.tools.get(name)
    return JSON.stringify(tool?.listing) + String(tool?.run)
  }
  if (capability === 'prompts') {
    const prompt = server.prompts.get(name)
    return JSON.stringify(prompt?.listing) + String(prompt?.definition.build)
  }
  if (capability !== 'resources') return ''
  const found = findResource(server, name)
  return String(found?.uri) + String(found?.read)
}

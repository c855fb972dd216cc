import type { Incoming } from '../jsonrpc/incoming.js'
import type { Params } from '../jsonrpc/message.js'
import type { Binding, AskContext } from './ask.js'
import type { Connection } from './call.js'
import { findResource } from './features/resources.js'
import type { Server } from './server.js'

/** All that a call needs to ask its client something. */
export function askContextOf(
  server: Server,
  incoming: Incoming,
  connection: Connection,
  call: {
    readonly key: string
    readonly signal: AbortSignal
    waiting<Value>(promise: Promise<Value>): Promise<Value>
  },
): AskContext {
  const { revision, caller } = connection
  return {
    key: call.key,
    incoming,
    // A call that is taken up is given its time later.
    get signal() {
      return call.signal
    },
    revision,
    capabilities: caller.capabilities,
    binding: bindingOf(server, incoming, connection),
    state: { ...server.state, seal: server.seal },
    server: server.info,
    waiting: (promise) => call.waiting(promise),
  }
}

function bindingOf(server: Server, { request }: Incoming, connection: Connection): Binding {
  // As they came: a handler may have changed the arguments that it was given.
  const { params = {} } = JSON.parse(request.frame) as { params?: Params } // it has been read before
  const { name, uri, arguments: given = {} } = params
  // Only what the method itself goes by: anything else may be said beside it.
  const named = request.method === 'resources/read' ? uri : name
  const target = typeof named === 'string' ? named : JSON.stringify(named ?? null)
  return {
    principal: connection.caller.principal?.id ?? '',
    method: request.method,
    name: target,
    arguments: given,
    definition: `${server.info.name} ${server.info.version} ${definitionOf(server, request.method, target)}`,
  }
}

/** What clients are shown of a definition, and the code behind it. */
function definitionOf(server: Server, method: string, name: string): string {
  if (method === 'tools/call') {
    const tool = server.tools.get(name)
    return JSON.stringify(tool?.listing) + String(tool?.run)
  }
  if (method === 'prompts/get') {
    const prompt = server.prompts.get(name)
    return JSON.stringify(prompt?.listing) + String(prompt?.definition.build)
  }
  const found = findResource(server, name)
  return String(found?.uri) + String(found?.read)
}

// What is measured. Each curve has a function per subject that prepares the work of size n and returns `run`, which is
// measured, and `end`.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import * as client from '@modelcontextprotocol/client'
import {
  InMemoryTransport,
  McpServer,
  ResourceTemplate,
  WebStandardStreamableHTTPServerTransport,
  createMcpHandler,
  fromJsonSchema,
} from '@modelcontextprotocol/server'
import { z } from 'zod'
import { connect, memory } from '../../dist/client.js'
import { httpHandler } from '../../dist/http.js'
import { createServer, resource, tool } from '../../dist/index.js'
import { MemoryTaskStore, tasks } from '../../dist/tasks.js'
import { HANDSHAKE, INITIALIZE, STATELESS, openStream, peerOf, peerOfSdk, post } from './peers.mjs'

const INFO = { name: 'bench', version: '1' }
const JSON_SCHEMA = { type: 'object', properties: { message: { type: 'string' } } }
const indexes = (n) => Array.from({ length: n }, (_, index) => index)
const text = (value) => ({ content: [{ type: 'text', text: value }] })
const contents = (uri) => ({ contents: [{ uri, text: 'x' }] })
const itemUri = (index) => `item://host/${index}`
const UNLIMITED = 1e9

/* Definitions: of each kind, one for ccmcp and one for a server of the SDK. */

const kinds = {
  tools: {
    one: (i) => tool({ name: `tool-${i}`, input: JSON_SCHEMA, run: () => 'ok' }),
    sdk: (server, i) =>
      server.registerTool(`tool-${i}`, { inputSchema: fromJsonSchema(JSON_SCHEMA) }, () =>
        text('ok'),
      ),
  },
  resources: {
    one: (i) => resource({ uri: itemUri(i), read: () => 'x' }),
    sdk: (server, i) =>
      server.registerResource(`item-${i}`, itemUri(i), {}, ({ href }) => contents(href)),
  },
  templates: {
    one: (i) => resource({ uri: `item://host/${i}/{id}`, name: `item-${i}`, read: () => 'x' }),
    sdk: (server, i) => {
      const template = new ResourceTemplate(`item://host/${i}/{id}`, { list: undefined })
      server.registerResource(`item-${i}`, template, {}, ({ href }) => contents(href))
    },
  },
}

const served = (kind, n) => {
  const definitions = indexes(n).map(kinds[kind].one)
  return createServer({ ...INFO, [kind === 'tools' ? 'tools' : 'resources']: definitions })
}
const SUBSCRIBABLE = { capabilities: { resources: { subscribe: true } } }
const sdkServed = (kind, n, options = {}) => {
  const server = new McpServer(INFO, options)
  for (const i of indexes(n)) kinds[kind].sdk(server, i)
  return server
}

const defining = (kind) => ({
  ccmcp: (n) => {
    const definitions = indexes(n).map(kinds[kind].one)
    const member = kind === 'tools' ? 'tools' : 'resources'
    return { run: () => createServer({ ...INFO, [member]: definitions }) }
  },
  sdk: (n) => ({ run: () => sdkServed(kind, n) }),
})

const adding = (kind) => ({
  ccmcp: (n) => {
    const definitions = indexes(n).map(kinds[kind].one)
    const server = createServer({
      ...INFO,
      tools: [tool({ name: 'first', run: () => 'ok' })],
      resources: [resource({ uri: 'first:', read: () => 'x' })],
    })
    const registry = kind === 'tools' ? server.tools : server.resources
    return {
      run() {
        for (const definition of definitions) registry.add(definition)
        return server
      },
    }
  },
  sdk: (n) => ({ run: () => sdkServed(kind, n) }),
})

/* Requests of one client in memory. */

const asking = (serverOf, sdkServerOf, ask) => ({
  async ccmcp(n) {
    const peer = await peerOf(memory(serverOf(n)).open()).initialize()
    return { run: () => ask(peer, n) }
  },
  async sdk(n) {
    const peer = await (await peerOfSdk(sdkServerOf(n), InMemoryTransport)).initialize()
    return { run: () => ask(peer, n) }
  },
})

async function callAll(peer, n) {
  for (const i of indexes(n)) await peer.request('tools/call', { name: `tool-${i}`, arguments: {} })
}

const zodTool = z.object({ message: z.string(), count: z.number().optional() })
const zodStart = {
  ccmcp: (n) => ({
    async run() {
      const tools = indexes(n).map((i) =>
        tool({ name: `tool-${i}`, input: zodTool.extend({}), run: () => 'ok' }),
      )
      return await peerOf(memory(createServer({ ...INFO, tools })).open()).initialize()
    },
  }),
  sdk: (n) => ({
    async run() {
      const server = new McpServer(INFO)
      for (const i of indexes(n))
        server.registerTool(`tool-${i}`, { inputSchema: zodTool.extend({}) }, () => text('ok'))
      return await (await peerOfSdk(server, InMemoryTransport)).initialize()
    },
  }),
}

const echo = {
  ccmcp: async (n) => {
    const one = tool({ name: 'echo', input: JSON_SCHEMA, run: ({ message }) => message })
    const server = createServer({ ...INFO, tools: [one] })
    const peer = await peerOf(memory(server).open()).initialize()
    return { run: () => echoing(peer, n) }
  },
  sdk: async (n) => {
    const server = new McpServer(INFO)
    const inputSchema = fromJsonSchema(JSON_SCHEMA)
    server.registerTool('echo', { inputSchema }, ({ message }) => text(message))
    const peer = await peerOfSdk(server, InMemoryTransport)
    const { send } = peer
    // As ccmcp's channel in memory, and any other transport but this, it carries text.
    peer.send = (message) => send(JSON.parse(JSON.stringify(message)))
    const receive = peer.receive.bind(peer)
    peer.receive = (message) => receive(JSON.parse(JSON.stringify(message)))
    await peer.initialize()
    return { run: () => echoing(peer, n) }
  },
  bare: (n) => {
    const params = { name: 'echo', arguments: { message: 'x'.repeat(100 * n) } }
    return {
      run() {
        for (const id of indexes(10)) {
          const asked = JSON.parse(JSON.stringify({ jsonrpc: '2.0', id, params }))
          const result = text(asked.params.arguments.message)
          JSON.parse(JSON.stringify({ jsonrpc: '2.0', id, result }))
        }
      },
    }
  },
}

async function echoing(peer, n) {
  const message = 'x'.repeat(100 * n)
  for (const _ of indexes(10))
    await peer.request('tools/call', { name: 'echo', arguments: { message } })
}

/* Sessions over HTTP. */

const initialize = (id) => ({ id, method: 'initialize', params: INITIALIZE })

async function openSessions(handler, n) {
  for (const id of indexes(n)) {
    const response = await post(handler, initialize(id))
    if (response.status !== 200) throw new Error(`initialize: ${response.status}`)
    await response.text()
  }
}

const quietly = { log: { write: () => true } }
const handlerOf = (server, n, options = {}) =>
  httpHandler(server, {
    ...quietly,
    limits: {
      sessions: n,
      openResponses: 2 * UNLIMITED,
      retainedBytes: UNLIMITED,
      retainedBytesPerPrincipal: UNLIMITED,
      retainedBytesPerSession: UNLIMITED,
      pendingBytes: UNLIMITED,
      pendingBytesPerClient: UNLIMITED,
    },
    ...options,
  })

const sessions = {
  ccmcp(n) {
    const handler = handlerOf(served('tools', 1), n)
    return { run: () => openSessions(handler, n), end: () => handler.close() }
  },
  sdk(n) {
    const all = new Map()
    const handler = async (request) => {
      const transport = new WebStandardStreamableHTTPServerTransport({
        sessionIdGenerator: () => crypto.randomUUID(),
        onsessioninitialized: (id) => void all.set(id, transport),
      })
      await sdkServed('tools', 1).connect(transport)
      return transport.handleRequest(request)
    }
    return { run: () => openSessions(handler, n) }
  },
}

const evictions = {
  async ccmcp(n) {
    const handler = handlerOf(served('tools', 1), n)
    await openSessions(handler, n)
    // Only those are evicted that were idle for a minute.
    passTime(90_000)
    return { run: () => openSessions(handler, n), end: () => handler.close() }
  },
}

/* Subscriptions. */

const listening = (uriCount, templateCount) => ({
  async ccmcp(n) {
    const peer = peerOf(memory(served('templates', templateCount(n))).open())
    const resourceSubscriptions = indexes(uriCount(n)).map((i) => `item://host/${i % 50}/${i}`)
    return { run: () => peer.listen({ resourceSubscriptions }) }
  },
  turns: true,
})

/** A server with a template for every URI, and a client that is connected to it. */
async function connected(revision) {
  const server = createServer({
    ...INFO,
    resources: [resource({ uri: 'item://host/{id}', read: () => 'x' })],
  })
  return { server, client: await connect(memory(server), { revision }) }
}

async function sdkConnected() {
  const server = new McpServer(INFO, SUBSCRIBABLE)
  for (const method of ['resources/subscribe', 'resources/unsubscribe'])
    server.server.setRequestHandler(method, () => ({}))
  const [own, other] = InMemoryTransport.createLinkedPair()
  const made = new client.Client(INFO)
  await server.connect(other)
  await made.connect(own)
  return { server, client: made }
}

const subscribing = {
  async ccmcp(n) {
    const { client: subscriber } = await connected('2026-07-28')
    return {
      async run() {
        for (const i of indexes(n)) await subscriber.subscribe(itemUri(i), () => {})
      },
      end: () => subscriber.close(),
    }
  },
  async sdk(n) {
    const { client: subscriber } = await sdkConnected()
    return {
      async run() {
        for (const i of indexes(n)) await subscriber.subscribeResource({ uri: itemUri(i) })
      },
      end: () => subscriber.close(),
    }
  },
  // A merged stream and those that it replaces share the server's memory limit for subscriptions.
  most: 5000,
}

const notifying = {
  async ccmcp(n) {
    const { server, client: subscriber } = await connected(HANDSHAKE)
    const heard = counter(n)
    for (const i of indexes(n)) await subscriber.subscribe(itemUri(i), heard.count)
    return {
      run() {
        for (const i of indexes(n)) server.updated(itemUri(i))
        return heard.all
      },
      end: () => subscriber.close(),
    }
  },
  async sdk(n) {
    const { server, client: subscriber } = await sdkConnected()
    const heard = counter(n)
    subscriber.setNotificationHandler('notifications/resources/updated', heard.count)
    return {
      async run() {
        for (const i of indexes(n)) await server.server.sendResourceUpdated({ uri: itemUri(i) })
        await heard.all
      },
      end: () => subscriber.close(),
    }
  },
}

/** Counts calls; `all` resolves after so many. */
function counter(wanted) {
  let count = 0
  let done
  const all = new Promise((resolve) => (done = resolve))
  return { all, count: () => void (++count === wanted && done()) }
}

/** n streams for one resource, opened; `heard` is called when a stream has sent a text, such as that of a keep-alive. */
async function openStreams(handler, n, sent, heard) {
  const receive = (chunk) => chunk.includes(sent) && heard()
  for (const id of indexes(n)) await openStream(handler, id, itemUri(0), receive)
}
const UPDATED = 'notifications/resources/updated'

const telling = {
  async ccmcp(n) {
    const server = served('resources', 1)
    const handler = handlerOf(server, n, { keepAlive: 0 })
    const heard = counter(n)
    await openStreams(handler, n, UPDATED, heard.count)
    return {
      run() {
        server.updated(itemUri(0))
        return heard.all
      },
      end: () => handler.close(),
    }
  },
  async sdk(n) {
    const handler = createMcpHandler(() => sdkServed('resources', 1, SUBSCRIBABLE), {
      maxSubscriptions: UNLIMITED,
      keepAliveMs: 0,
    })
    const heard = counter(n)
    await openStreams((request) => handler.fetch(request), n, UPDATED, heard.count)
    return {
      run() {
        handler.notify.resourceUpdated(itemUri(0))
        return heard.all
      },
      end: () => handler.close(),
    }
  },
  turns: true,
}

/** The keep-alives of one interval. */
const keepingAlive = {
  async ccmcp(n) {
    const handler = handlerOf(served('resources', 1), n, { keepAlive: 2000 })
    let heard = counter(n)
    await openStreams(handler, n, ':', () => heard.count())
    // Not long before the next interval ends.
    await heard.all
    await new Promise((resolve) => setTimeout(resolve, 1500))
    return {
      run() {
        heard = counter(n)
        return heard.all
      },
      end: () => handler.close(),
    }
  },
  slow: true,
  turns: true,
}

/* Tasks. */

const room = (maxTasks) => ({
  maxTasks,
  maxTasksPerOwner: maxTasks,
  maxBytes: UNLIMITED,
  maxBytesPerOwner: UNLIMITED,
})

function taskServer(maxTasks, run) {
  const tools = [tool({ name: 'task', task: 'must', run })]
  const store = new MemoryTaskStore(room(maxTasks))
  return peerOf(memory(createServer({ ...INFO, tools, extensions: [tasks({ store })] })).open())
}

const call = (peer) => peer.request('tools/call', { _meta: STATELESS, name: 'task', arguments: {} })

const ending = (ended) => () => {
  ended.count()
  return 'ok'
}

const creating = {
  ccmcp(n) {
    const ended = counter(n)
    const peer = taskServer(n, ending(ended))
    return {
      async run() {
        for (const _ of indexes(n)) await call(peer)
        await ended.all
      },
    }
  },
}

const refusing = {
  async ccmcp(n) {
    const ended = counter(n)
    const peer = taskServer(n, ending(ended))
    for (const _ of indexes(n)) await call(peer)
    await ended.all
    return {
      async run() {
        for (const _ of indexes(n)) {
          const refused = await call(peer).then(
            ({ isError }) => isError === true,
            () => true,
          )
          if (!refused) throw new Error('The task was not refused')
        }
      },
    }
  },
}

const stepping = {
  ccmcp(n) {
    const ended = counter(1)
    const peer = taskServer(1, async (_, context) => {
      for (const i of indexes(n)) await context.step(`step-${i}`, () => i)
      ended.count()
      return 'ok'
    })
    return {
      async run() {
        await call(peer)
        await ended.all
      },
    }
  },
}

/* Calls over stdio that wait. */

const waiting = (subject) => async (n) => {
  const file = fileURLToPath(new URL('waiting.mjs', import.meta.url))
  const child = spawn(process.execPath, [file, subject], { stdio: ['pipe', 'pipe', 'ignore'] })
  let lines = 0
  let reached = () => {}
  child.stdout.on('data', (chunk) => {
    for (const byte of chunk) if (byte === 10) lines++
    reached()
  })
  const until = (count) =>
    new Promise((resolve) => {
      reached = () => lines >= count && resolve()
      reached()
    })
  const line = (message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`
  child.stdin.write(line({ ...initialize('i') }))
  await until(1)
  child.stdin.write(line({ method: 'notifications/initialized' }))
  const params = { name: 'slow', arguments: {} }
  const bytes = indexes(n).map((id) => line({ id, method: 'tools/call', params }))
  return {
    async run() {
      child.stdin.write(bytes.join(''))
      await until(1 + n)
    },
    async end() {
      child.stdin.end()
      await once(child, 'exit')
    },
  }
}

/**
 * `clock`: by the clock, and not by CPU time. `slow`: done once for each size. `turns`: one request or change is measured,
 * and must not keep the event loop for long. `most`: the largest size.
 */
export const CURVES = {
  'tools in createServer': defining('tools'),
  'tools added one by one': adding('tools'),
  'resources in createServer': defining('resources'),
  'resources added one by one': adding('resources'),
  'templates in createServer': defining('templates'),
  'templates added one by one': adding('templates'),
  'zod tools, first response': zodStart,
  'a call of each of n tools': asking(
    (n) => served('tools', n),
    (n) => sdkServed('tools', n),
    callAll,
  ),
  'tools/list of n tools': asking(
    (n) => served('tools', n),
    (n) => sdkServed('tools', n),
    (peer) => peer.list('tools/list'),
  ),
  'ten messages of n × 100 bytes': echo,
  'stdio calls that wait 100 ms': {
    ccmcp: waiting('ccmcp'),
    sdk: waiting('sdk'),
    clock: true,
  },
  sessions,
  'sessions, each evicting one of n': evictions,
  'listen: n URIs, 100 templates': listening(
    (n) => n,
    () => 100,
  ),
  'listen: 1,000 URIs, n templates': listening(
    () => 1000,
    (n) => n,
  ),
  'n times await client.subscribe()': subscribing,
  'n changes, n subscriptions': notifying,
  'one change, n HTTP streams': telling,
  'keep-alives, n HTTP streams': keepingAlive,
  tasks: creating,
  'refused tasks, with a store of n': refusing,
  'steps of one task': stepping,
}

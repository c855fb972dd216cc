import { PassThrough, Writable } from 'node:stream'
import { connect, memory } from '../../src/client.js'
import {
  type ServerOptions,
  type Tool,
  createServer,
  form,
  prompt,
  resource,
  roots,
  tool,
} from '../../src/index.js'
import { type ServeOptions, serve } from '../../src/stdio.js'
import { connectInMemory } from '../../src/testing.js'
import { type Hook, type Row, outcome, row } from './modes.js'

const HANDSHAKE = '2025-11-25'
const NEWEST = '2026-07-28'
const GIVEN_UP = 'Error: given up'
const INTERNAL = 'error -32603'

const serverOf = (options: Partial<ServerOptions>) =>
  createServer({ name: 'hooks', version: '1', ...options })
const note = resource({ uri: 'note://one', read: () => 'one' })

/** Sends a request; cancels it if there is no response. Afterwards the server must serve the next one. */
async function ask(
  hook: Hook,
  options: Partial<ServerOptions>,
  method: string,
  params: Readonly<Record<string, unknown>> = {},
  revision = HANDSHAKE,
): Promise<string> {
  const client = await connect(memory(serverOf(options)), { revision, roots: () => [] })
  const controller = new AbortController()
  const result = client.request(method, params, { signal: controller.signal })
  const came = await outcome(result, hook, () => controller.abort(new Error('given up')))
  await client.request(revision === HANDSHAKE ? 'ping' : 'server/discover')
  await client.close()
  return came
}

const calls = (
  hook: Hook,
  facts: Partial<Tool>,
  revision = HANDSHAKE,
  options: Partial<ServerOptions> = {},
) =>
  ask(
    hook,
    { ...options, tools: [{ ...tool({ name: 'it', run: () => 'done' }), ...facts }] },
    'tools/call',
    { name: 'it' },
    revision,
  )

const schema = (hooks: { validate?: Hook; jsonSchema?: Hook }) => ({
  '~standard': {
    version: 1 as const,
    vendor: 'test',
    validate: hooks.validate ?? ((value: unknown) => ({ value })),
    jsonSchema: {
      input: hooks.jsonSchema ?? (() => ({ type: 'object' })),
      output: hooks.jsonSchema ?? (() => ({ type: 'object' })),
    },
  },
})

/** Serves one tool call over byte streams. */
async function overStreams(options: Partial<ServeOptions>): Promise<string> {
  const input = new PassThrough()
  let output = ''
  const sink = new Writable({
    write(chunk: Buffer, _, done) {
      output += chunk.toString()
      done()
    },
  })
  const meta = {
    'io.modelcontextprotocol/protocolVersion': NEWEST,
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  input.end(
    `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'it', _meta: meta } })}\n`,
  )
  const failing = tool({
    name: 'it',
    run: () => {
      throw new Error('for the log')
    },
  })
  await serve(serverOf({ tools: [failing] }), { input, output: sink, ...options })
  return output.includes('"id":1') ? 'answered' : output
}

export const SERVER_ROWS: readonly Row[] = [
  row('run of a tool', 'isError', GIVEN_UP, (run) => calls(run, { run })),
  row('run of a tool with a timeout', 'isError', 'isError', async (run) => {
    const it = { ...tool({ name: 'it', timeout: 20, run: () => '' }), run }
    await using client = await connect(memory(serverOf({ tools: [it] })), { revision: HANDSHAKE })
    return (await client.callTool('it')).isError === true ? 'isError' : 'result'
  }),
  row('run of a tool with a concurrency', 'isError', GIVEN_UP, (run) =>
    calls(run, { run, concurrency: 1 }),
  ),
  row('handle', 'isError', GIVEN_UP, (handle) =>
    ask(handle, { handle, tools: [{ name: 'it', input: { type: 'object' } }] }, 'tools/call', {
      name: 'it',
    }),
  ),
  row('visible of a tool, called', INTERNAL, GIVEN_UP, (visible) => calls(visible, { visible })),
  row('visible of a tool, listed with another that rejects', INTERNAL, INTERNAL, (visible) => {
    const hidden = tool({
      name: 'other',
      visible: () => Promise.reject(new Error('boom as well')),
      run: () => '',
    })
    return ask(
      visible,
      { tools: [hidden, tool({ name: 'it', visible, run: () => '' })] },
      'tools/list',
    )
  }),
  row('visible of a tool, listed', INTERNAL, GIVEN_UP, (visible) =>
    ask(visible, { tools: [tool({ name: 'it', visible, run: () => '' })] }, 'tools/list'),
  ),
  row('visible of a resource, listed', INTERNAL, GIVEN_UP, (visible) =>
    ask(visible, { resources: [{ ...note, visible }] }, 'resources/list'),
  ),
  row('visible of a resource, read', INTERNAL, GIVEN_UP, (visible) =>
    ask(visible, { resources: [{ ...note, visible }] }, 'resources/read', { uri: note.uri }),
  ),
  row('visible of a resource, subscribed to', INTERNAL, GIVEN_UP, (visible) =>
    ask(visible, { resources: [{ ...note, visible }] }, 'resources/subscribe', { uri: note.uri }),
  ),
  row(
    'visible of a resource, subscribed to with another that rejects (subscriptions/listen)',
    INTERNAL,
    INTERNAL,
    (visible) => {
      const other = resource({
        uri: 'note://two',
        visible: () => Promise.reject(new Error('boom as well')),
        read: () => '',
      })
      const notifications = { resourceSubscriptions: [other.uri, note.uri] }
      return ask(
        visible,
        { resources: [{ ...note, visible }, other] },
        'subscriptions/listen',
        { notifications },
        NEWEST,
      )
    },
  ),
  row('visible of a template, listed', INTERNAL, GIVEN_UP, (visible) =>
    ask(
      visible,
      { resources: [resource({ uri: 'note://{name}', visible, read: () => '' })] },
      'resources/templates/list',
    ),
  ),
  row('visible of a prompt, listed', INTERNAL, GIVEN_UP, (visible) =>
    ask(visible, { prompts: [prompt({ name: 'p', visible, build: () => '' })] }, 'prompts/list'),
  ),
  row('visible of a prompt, in prompts/get', INTERNAL, GIVEN_UP, (visible) =>
    ask(visible, { prompts: [prompt({ name: 'p', visible, build: () => '' })] }, 'prompts/get', {
      name: 'p',
    }),
  ),
  row('visible of a prompt, in completion/complete', INTERNAL, GIVEN_UP, (visible) =>
    ask(
      visible,
      {
        prompts: [
          prompt({ name: 'p', visible, arguments: { a: { values: ['x'] } }, build: () => '' }),
        ],
      },
      'completion/complete',
      {
        ref: { type: 'ref/prompt', name: 'p' },
        argument: { name: 'a', value: '' },
      },
    ),
  ),
  row('read', INTERNAL, GIVEN_UP, (read) =>
    ask(read, { resources: [{ ...note, read }] }, 'resources/read', { uri: note.uri }),
  ),
  row('list', INTERNAL, GIVEN_UP, (list) =>
    ask(
      list,
      { resources: [resource({ uri: 'note://{name}', list, read: () => '' })] },
      'resources/list',
    ),
  ),
  row('complete of a template', INTERNAL, GIVEN_UP, (complete) =>
    ask(
      complete,
      {
        resources: [
          resource({ uri: 'note://{name}', complete: { name: complete }, read: () => '' }),
        ],
      },
      'completion/complete',
      {
        ref: { type: 'ref/resource', uri: 'note://{name}' },
        argument: { name: 'name', value: '' },
      },
    ),
  ),
  row('complete of a prompt', INTERNAL, GIVEN_UP, (complete) =>
    ask(
      complete,
      { prompts: [prompt({ name: 'p', arguments: { a: { complete } }, build: () => '' })] },
      'completion/complete',
      {
        ref: { type: 'ref/prompt', name: 'p' },
        argument: { name: 'a', value: '' },
      },
    ),
  ),
  row('build', INTERNAL, GIVEN_UP, (build) =>
    ask(build, { prompts: [prompt({ name: 'p', build })] }, 'prompts/get', { name: 'p' }),
  ),
  row('a middleware', INTERNAL, GIVEN_UP, async (middleware) => {
    const server = serverOf({ tools: [tool({ name: 'it', run: () => '' })] })
    server.use((call, next) => (call.method === 'tools/call' ? middleware() : next()))
    await using client = await connect(memory(server), { revision: HANDSHAKE })
    const controller = new AbortController()
    return await outcome(client.callTool('it', {}, { signal: controller.signal }), middleware, () =>
      controller.abort(new Error('given up')),
    )
  }),
  row(
    'a middleware, at initialize',
    'ConnectionError: The server responded to initialize with error -32603: Internal error',
    'ConnectionError: given up',
    async (middleware) => {
      const server = serverOf({})
      server.use(middleware)
      const controller = new AbortController()
      const connecting = connect(memory(server), { revision: HANDSHAKE, signal: controller.signal })
      return await outcome(connecting, middleware, () => controller.abort(new Error('given up')))
    },
  ),
  row(
    'run of a tool, after a middleware that does not await it',
    'result',
    'result',
    async (run) => {
      const server = serverOf({
        unexpectedErrors: 'protocol',
        tools: [{ ...tool({ name: 'it', run: () => '' }), run }],
      })
      server.use((call, next) => {
        if (call.method !== 'tools/call') return next()
        try {
          void next()
        } catch {
          // The middleware ignores the error.
        }
        return { content: [] }
      })
      await using client = await connect(memory(server), { revision: HANDSHAKE })
      return await outcome(client.callTool('it'), run)
    },
  ),
  row('onInitialized', 'result', 'result', (onInitialized) =>
    ask(onInitialized, { onInitialized }, 'ping'),
  ),
  row('validate of an input', INTERNAL, GIVEN_UP, (validate) =>
    calls(validate, { input: schema({ validate }) }),
  ),
  row('validate of an output', 'isError', GIVEN_UP, (validate) =>
    calls(validate, { output: schema({ validate }), run: () => ({}) }),
  ),
  row('jsonSchema', 'TypeError', 'TypeError', async (jsonSchema) => {
    try {
      serverOf({
        tools: [tool({ name: 'it', input: schema({ jsonSchema }) as never, run: () => '' })],
      })
      return 'a server'
    } catch (error) {
      return error instanceof Error ? error.name : 'something else'
    }
  }),
  row('a step', 'isError', GIVEN_UP, (step) =>
    calls(step, { run: (_, call) => call.step('s', step) }),
  ),
  row('a step concurrent with an elicitation', 'isError', GIVEN_UP, (step) =>
    calls(
      step,
      { run: (_, call) => Promise.all([call.step('s', step), call.ask({ r: roots() })]) },
      NEWEST,
    ),
  ),
  row('once.consume', INTERNAL, GIVEN_UP, (consume) =>
    calls(consume, { run: async (_, call) => (await call.ask({ r: roots() })).r.length }, NEWEST, {
      state: { once: { consume } },
    }),
  ),
  ...[HANDSHAKE, NEWEST].map((revision) =>
    row(`validate of a form, ${revision}`, 'isError', GIVEN_UP, async (validate) => {
      const fields = {
        '~standard': {
          ...schema({ validate })['~standard'],
          jsonSchema: { input: () => ({ type: 'object', properties: {} }), output: () => ({}) },
        },
      }
      const it = tool({
        name: 'it',
        run: (_, call) => call.ask({ f: form({ message: '?', schema: fields as never }) }),
      })
      await using client = await connect(memory(serverOf({ tools: [it] })), {
        revision,
        elicit: () => ({ action: 'accept', content: {} }),
      })
      const controller = new AbortController()
      return await outcome(client.callTool('it', {}, { signal: controller.signal }), validate, () =>
        controller.abort(new Error('given up')),
      )
    }),
  ),
  row('tap of serve', 'answered', 'answered', (tap) => overStreams({ tap })),
  row('write of a log', 'answered', 'answered', (write) =>
    overStreams({ log: { write }, logLevel: 'debug' }),
  ),
  row('report and closed of a session', 'answered', 'answered', async (hook) => {
    const channel = connectInMemory(serverOf({}), { report: hook, closed: hook })
    const answered = new Promise<string>((resolve) =>
      channel.receive({ frame: () => resolve('answered'), malformed: () => {}, closed: () => {} }),
    )
    channel.send('{')
    const came = await answered
    await channel.close()
    return came
  }),
]

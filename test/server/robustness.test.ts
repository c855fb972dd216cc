import { describe, expect, it } from 'vitest'
import {
  type Call,
  RpcError,
  type ServerOptions,
  type Tool,
  ToolError,
  createServer,
  prompt,
  resource,
  result,
  tool,
} from '../../src/index.js'
import { connect, memory } from '../../src/client.js'
import { playTranscript } from '../../src/testing.js'
import { Semaphore } from '../../src/server/semaphore.js'
import { answers, call, drive, initialize } from '../drive.js'
import { serveInOneTurn } from '../clock.js'

serveInOneTurn()

/* Misbehaving handlers and peers: every call gets exactly one response, and the next one is served. */

const serverOf = (...tools: Tool[]) => createServer({ name: 'hostile', version: '1', tools })
const open = initialize('2025-11-25')
const any = { type: 'object' } as const
const trap = () =>
  new Proxy(new Error('x'), {
    getPrototypeOf() {
      throw new Error('trap')
    },
    get() {
      throw new Error('trap')
    },
    has() {
      throw new Error('trap')
    },
  })

describe('a handler', () => {
  const cases: Record<string, (input: unknown, call: Call) => unknown> = {
    'throws an RpcError whose code is a bigint': () => {
      throw new RpcError(1n as unknown as number, 'x')
    },
    'throws an RpcError whose code is NaN': () => {
      throw new RpcError(Number.NaN, 'x')
    },
    'throws an RpcError whose message is a symbol': () => {
      throw new RpcError(-1, Symbol('x') as unknown as string)
    },
    'throws a proxy whose traps throw': () => {
      throw trap()
    },
    'rejects with a proxy whose traps throw': () => Promise.reject(trap()),
    'returns a proxy whose traps throw': () => trap(),
    'throws an error whose stack throws': () => {
      throw Object.defineProperty(new Error('x'), 'stack', {
        get() {
          throw new Error('trap')
        },
      })
    },
    'throws an error whose message throws': () => {
      throw Object.defineProperty(new Error('x'), 'message', {
        get() {
          throw new Error('trap')
        },
      })
    },
    'reports progress that is a bigint': (_, { progress }) => {
      void progress
      return 'x'
    },
  }
  it.each(Object.entries(cases))('%s', async (_, run) => {
    const came = await answers(serverOf(tool({ name: 'it', input: any, run })), [
      ...open,
      call('it'),
      '{"jsonrpc":"2.0","id":2,"method":"ping"}',
    ])
    expect(came).toHaveLength(3)
    expect(came).toContainEqual({ jsonrpc: '2.0', id: 2, result: {} })
    expect(came).toContainEqual(expect.objectContaining({ id: 1 }))
  })

  it('invalid progress values are ignored', async () => {
    const run = async (_: unknown, one: Call) => {
      const circular: Record<string, unknown> = {}
      circular['self'] = circular
      one.progress(1n as unknown as number)
      one.progress(Infinity)
      one.progress(1, Infinity, circular as unknown as string)
      await new Promise((resolve) => setImmediate(resolve))
      return 'x'
    }
    const asking =
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"it","_meta":{"progressToken":7}}}'
    const came = await answers(serverOf(tool({ name: 'it', input: any, run })), [...open, asking])
    expect(came.slice(1)).toMatchObject([
      { method: 'notifications/progress', params: { progressToken: 7, progress: 1 } },
      { id: 1 },
    ])
    expect(came[1]).toEqual({
      jsonrpc: '2.0',
      method: 'notifications/progress',
      params: { progressToken: 7, progress: 1 },
    })
  })

  it('malformed results are errors', async () => {
    const tools = [
      tool({ name: 'extra', run: () => ({ type: 'text', text: 'x', foo: 'bar' }) }),
      tool({ name: 'json', run: () => ({ type: 'text', text: 'x', toJSON: () => 42 }) }),
      tool({
        name: 'branded',
        run: () => result({ content: 'x', isError: 'yes' as unknown as boolean }),
      }),
      tool({
        name: 'meta',
        run: () => result({ content: 'x', meta: 'm' as unknown as Record<string, unknown> }),
      }),
      tool({
        name: 'error',
        run: () => {
          throw Object.assign(new ToolError('x'), { message: { a: 1 } })
        },
      }),
      tool({
        name: 'nan',
        output: { type: 'object', properties: { n: { type: 'number' } } },
        run: () => ({ n: Number.NaN }),
      }),
      tool({
        name: 'date',
        output: { type: 'object' },
        run: () => new Date() as unknown as Record<string, unknown>,
      }),
      tool({
        name: 'late',
        output: { type: 'object', properties: { at: { type: 'string' } } },
        run: () => ({ at: new Date(0) as unknown as string }),
      }),
    ]
    const came = (await answers(serverOf(...tools), [
      ...open,
      ...tools.map(({ name }, id) => call(name, {}, id)),
    ])) as { result: unknown }[]
    const texts = came.slice(1).map(({ result: each }) => each)
    expect(texts).toEqual([
      { content: [{ type: 'text', text: 'x' }], isError: false },
      { content: [{ type: 'text', text: '42' }], isError: false },
      { content: [{ type: 'text', text: 'x' }], isError: false },
      {
        content: [
          { type: 'text', text: 'Tool meta failed: its result has a `meta` that is not an object' },
        ],
        isError: true,
      },
      { content: [{ type: 'text', text: '[object Object]' }], isError: true },
      {
        content: [
          {
            type: 'text',
            text: 'Tool nan failed: its result does not match its output schema: n must be a number, not null',
          },
        ],
        isError: true,
      },
      {
        content: [{ type: 'text', text: expect.stringContaining('must be an object') as unknown }],
        isError: true,
      },
      {
        content: [{ type: 'text', text: '{"at":"1970-01-01T00:00:00.000Z"}' }],
        isError: false,
        structuredContent: { at: '1970-01-01T00:00:00.000Z' },
      },
    ])
  })

  it('arrays with holes are malformed, not sent with null', async () => {
    const text = { type: 'text', text: 'x' } as const
    const holed = <Item>(...items: Item[]) => {
      const all: Item[] = []
      for (const [index, item] of items.entries()) all[2 * index + 1] = item
      return all
    }
    const server = createServer({
      name: 'holes',
      version: '1',
      tools: [
        tool({ name: 'content', run: () => ({ content: holed(text) }) }),
        tool({ name: 'result', run: () => result({ content: holed('x', 'y') }) }),
        // What is neither text nor content is sent as JSON.
        tool({ name: 'value', run: () => holed('x', 'y') }),
        tool({ name: 'similar', run: () => ({ content: holed(text), other: 1 }) }),
        tool({
          name: 'structured',
          output: { type: 'array', items: { type: ['string', 'null'] } },
          run: () => holed('x'),
        }),
      ],
      resources: [
        resource({ uri: 'holes:///plain', read: () => holed('x') }),
        resource({
          uri: 'holes:///whole',
          read: () => ({ contents: holed({ uri: 'x:', text: 'x' }) }),
        }),
        resource({
          uri: 'holes:///{name}',
          read: () => 'x',
          complete: { name: () => holed('x') },
        }),
      ],
      prompts: [
        prompt({
          name: 'plain',
          build: () => holed({ role: 'user' as const, content: 'x' }),
        }),
        prompt({
          name: 'whole',
          build: () => ({ messages: holed({ role: 'user' as const, content: text }) }),
        }),
      ],
    })
    await using client = await connect(memory(server))
    const texts = async (name: string) => {
      const { content, isError } = await client.callTool(name)
      return [isError, ...content.map((block) => (block as { text: string }).text)]
    }
    const fault =
      'content[0] is neither a string nor a content block: its "type" is missing; it must be one of'
    expect(await texts('content')).toEqual([true, expect.stringContaining(fault)])
    expect(await texts('result')).toEqual([true, expect.stringContaining(fault)])
    expect(await texts('value')).toEqual([false, '[null,"x",null,"y"]'])
    expect(await texts('similar')).toEqual([
      false,
      '{"content":[null,{"type":"text","text":"x"}],"other":1}',
    ])
    expect(await client.callTool('structured')).toMatchObject({
      isError: false,
      structuredContent: [null, 'x'],
    })
    await expect(client.readResource('holes:///plain')).rejects.toThrow(
      'returned a malformed result',
    )
    await expect(client.readResource('holes:///whole')).rejects.toThrow(
      'returned a malformed result',
    )
    await expect(client.getPrompt('plain')).rejects.toThrow('returned a malformed result')
    await expect(client.getPrompt('whole')).rejects.toThrow('returned a malformed result')
    await expect(
      client.complete({ template: 'holes:///{name}' }, { name: 'name', value: '' }),
    ).rejects.toThrow('it must be an array of strings')
  })

  it('call.signal is one object and is aborted for late readers', async () => {
    let same = false
    let looked: AbortSignal | undefined
    const timed = tool({
      name: 'timed',
      timeout: 1000,
      run: (_, one) => {
        same = one.signal === one.signal
        return 'x'
      },
    })
    const late = tool({
      name: 'late',
      run: (_, one) =>
        new Promise((resolve) =>
          setImmediate(() => {
            looked = one.signal
            resolve('x')
          }),
        ),
    })
    await answers(serverOf(timed, late), [
      ...open,
      call('timed'),
      call('late', {}, 2),
      '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"enough"}}',
      '{"jsonrpc":"2.0","id":3,"method":"ping"}',
    ])
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
    expect(same).toBe(true)
    expect(looked?.reason).toMatchObject({ message: 'enough', code: 'CANCELLED' })
  })
})

describe('limits of a tool', () => {
  it('keep the order while slots are free', async () => {
    let state = 0
    const set = tool({ name: 'set', concurrency: 1, run: () => String((state = 1)) })
    const get = tool({ name: 'get', run: () => String(state) })
    expect(
      (await answers(serverOf(set, get), [...open, call('set'), call('get', {}, 2)])).slice(1),
    ).toMatchObject([
      { result: { content: [{ text: '1' }] } },
      { result: { content: [{ text: '1' }] } },
    ])
  })

  it('include the time in the queue', async () => {
    const never = tool({
      name: 'never',
      concurrency: 1,
      timeout: 30,
      run: () => new Promise(() => {}),
    })
    const came = await answers(serverOf(never), [
      ...open,
      call('never', {}, 1),
      call('never', {}, 2),
    ])
    expect(came.slice(1)).toMatchObject([
      { id: 1, result: { isError: true } },
      { id: 2, result: { isError: true } },
    ])
  })

  it('keep no slot for a call that is aborted when its turn has come', async () => {
    const semaphore = new Semaphore(1, 10)
    expect(semaphore.tryEnter()).toBe(true)
    const [first, second] = [new AbortController(), new AbortController()]
    const entering = semaphore.enter(first.signal)
    const next = semaphore.enter(second.signal)
    semaphore.leave()
    first.abort(new Error('cancelled'))
    await expect(entering).rejects.toThrow('cancelled')
    await next
    expect(semaphore.tryEnter()).toBe(false)
    second.abort(new Error('too late'))
    semaphore.leave()
    expect(semaphore.tryEnter()).toBe(true)
    await expect(semaphore.enter(AbortSignal.abort(new Error('before')))).rejects.toThrow('before')
    semaphore.leave()
    expect(semaphore.tryEnter()).toBe(true)
    expect(semaphore.tryEnter()).toBe(false)
  })

  it('do not start a call that was cancelled during validation of its arguments', async () => {
    let ran = false
    let validated = () => {}
    const slow = {
      '~standard': {
        version: 1,
        vendor: 'test',
        validate: (value: unknown) =>
          new Promise((resolve) => (validated = () => resolve({ value }))),
        jsonSchema: { input: () => ({ type: 'object' }), output: () => ({ type: 'object' }) },
      },
    } as never
    const it = tool({ name: 'it', input: slow, run: () => String((ran = true)) })
    await answers(serverOf(it), [
      ...open,
      call('it'),
      '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}',
    ])
    validated()
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
    expect(ran).toBe(false)
  })
})

describe('a peer', () => {
  it.each([
    [
      'its id last, as many clients write it',
      (pad: string) =>
        `{"method":"tools/call","params":{"name":"it","arguments":{"a":"${pad}"}},"jsonrpc":"2.0","id":5}`,
      5,
    ],
    [
      'its id and version last',
      (pad: string) => `{"method":"tools/call","params":{"a":"${pad}"},"id":"x","jsonrpc":"2.0"}`,
      'x',
    ],
    [
      'an error among its arguments',
      (pad: string) =>
        `{"jsonrpc":"2.0","id":6,"params":{"arguments":{"error":"e","a":"${pad}"}},"method":"tools/call"}`,
      6,
    ],
    [
      'an id within its arguments',
      (pad: string) =>
        `{"jsonrpc":"2.0","method":"tools/call","params":{"a":"${pad}","b":{"id":7}}}`,
      undefined,
    ],
  ])('gets an error for a message over the limit with %s', async (_, make, id) => {
    const came = await answers(
      serverOf(tool({ name: 'it', input: any, run: () => '' })),
      [...open, make('x'.repeat(20_000)), '{"jsonrpc":"2.0","id":99,"method":"ping"}'],
      { maxMessage: 10_000 },
    )
    const { id: told, error } = came[1] as { id?: unknown; error: { code: number } }
    expect([told, error.code]).toEqual([id, -32600])
    expect(came[2]).toMatchObject({ id: 99 })
  })

  it('gets an error response that is not larger than its request', async () => {
    const strict = tool({
      name: 'strict',
      input: {
        type: 'object',
        properties: Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`known_${i}`, {}])),
        additionalProperties: false,
      },
      run: () => '',
    })
    const args = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`k${i}`, 1]))
    const { output } = await drive(serverOf(strict), [...open, call('strict', args)].join('\n'))
    expect(output.length).toBeLessThan(20_000)
    expect(output).toContain('; and more')
  })

  it('gets an error for an invalid cursor', async () => {
    expect(
      (
        await answers(serverOf(tool({ name: 'it', run: () => '' })), [
          ...open,
          '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}',
        ])
      )[1],
    ).toMatchObject({ error: { code: -32602 } })
  })

  it('cannot write control characters in clientInfo to the log', async () => {
    let log = ''
    const named =
      open[0]?.replace('"name":"test"', '"name":"\\u001b]0;x\\u0007\\nerror: fake"') ?? ''
    await drive(serverOf(), named, {
      log: { isTTY: true, write: (line) => (log += line) },
      logLevel: 'info',
    })
    expect(log).toBe(
      'info: Initialized by \\u001b]0;x\\u0007\\nerror: fake, protocol 2025-11-25 (request init)\n',
    )
  })

  it('is served if the log cannot be written', async () => {
    const broken = {
      write() {
        throw new Error('EPIPE')
      },
    }
    expect(
      (
        await drive(serverOf(), 'garbage\n{"jsonrpc":"2.0","id":1,"method":"ping"}', {
          log: broken,
        })
      ).output,
    ).toContain('"id":1,"result":{}')
  })
})

describe('a definition', () => {
  it.each([
    ['a title that is not a string', { title: 42 }, '"title" must be a string'],
    ['a description that is not a string', { description: {} }, '"description" must be a string'],
    ['annotations that are not an object', { annotations: 'x' }, '"annotations" must be an object'],
    [
      'icons that are not an array',
      { icons: 'x' },
      '"icons" must be an array of objects with a "src"',
    ],
    [
      'a hint that is not a boolean',
      { annotations: { readOnlyHint: 'yes' } },
      '"annotations.readOnlyHint" must be true or false',
    ],
    [
      'a title in annotations that is not a string',
      { annotations: { title: 1 } },
      '"annotations.title" must be a string',
    ],
    [
      'an icon with sizes that are not an array',
      { icons: [{ src: 'x:', sizes: '48x48' }] },
      '"icons.sizes" must be an array of strings',
    ],
    [
      'an icon with an unknown theme',
      { icons: [{ src: 'x:', theme: 'blue' }] },
      '"icons.theme" must be "light" or "dark"',
    ],
    [
      'an icon with an invalid mimeType',
      { icons: [{ src: 'x:', mimeType: 1 }] },
      '"icons.mimeType" must be a string',
    ],
    [
      'visible that is not a function',
      { visible: true },
      '"visible" must be a function of the caller',
    ],
    ['run that is not a function', { run: 'x' }, '"run" must be a function'],
    [
      'true as the schema of a parameter',
      { input: { type: 'object', properties: { a: true } } },
      'its input schema has "a": true; write {}, otherwise hosts drop the whole list',
    ],
    [
      'false as the schema of an output property',
      { output: { type: 'object', properties: { a: {}, b: false } } },
      'its output schema has "b": false; write { "not": {} }, otherwise hosts drop the whole list',
    ],
    [
      'meta that is not JSON',
      { meta: { n: 1n } },
      'it cannot be listed, since not all of it is JSON',
    ],
  ])('with %s is rejected', (_, wrong, message) => {
    expect(() =>
      serverOf({ name: 't', input: any, run: () => '', ...wrong } as unknown as Tool),
    ).toThrow(`Tool "t": ${message}`)
  })
  it('is rejected if it is not an object', () => {
    expect(() => serverOf(null as unknown as Tool)).toThrow('A tool must be an object')
    expect(() =>
      createServer({ name: 'x', version: '1', invalidArguments: 'ignore' as 'result' }),
    ).toThrow('createServer: "invalidArguments" must be one of result, protocol, not "ignore"')
  })
  it('of a resource has valid annotations', () => {
    const served = (annotations: object) => () =>
      createServer({
        name: 'x',
        version: '1',
        resources: [{ uri: 'a:b', read: () => '', annotations }],
      })
    expect(
      served({
        audience: ['user', 'assistant'],
        priority: 1,
        lastModified: '2025-01-12T15:00:58Z',
        more: 1,
      }),
    ).not.toThrow()
    expect(served({ audience: 'user' })).toThrow(
      'Resource "a:b": "annotations.audience" must be an array of "user" and "assistant"',
    )
    expect(served({ priority: 2 })).toThrow(
      'Resource "a:b": "annotations.priority" must be a number from 0 to 1',
    )
  })
})

describe('a server', () => {
  it.each([
    ['tools that are not an array', { tools: {} }, '"tools" must be an array'],
    ['prompts that are not an array', { prompts: 'x' }, '"prompts" must be an array'],
    [
      'handle that is not a function',
      { handle: 1, tools: [{ name: 't', input: any }] },
      '"handle" must be a function',
    ],
    ['an unknown log level', { logLevel: 'loud' }, '"logLevel" must be one of debug, info, notice'],
    ['a title that is not a string', { title: 1 }, 'createServer: "title" must be a string'],
    [
      'icons without a src',
      { icons: [{}] },
      'createServer: "icons" must be an array of objects with a "src"',
    ],
  ])('with %s is rejected', (_, wrong, message) => {
    expect(() =>
      createServer({ name: 'x', version: '1', ...wrong } as unknown as ServerOptions),
    ).toThrow(message)
  })
})

describe('a transcript', () => {
  it('reports unexpected messages and distinguishes large numbers', async () => {
    const server = serverOf()
    expect(
      (await playTranscript('> {"jsonrpc":"2.0","id":1,"method":"ping"}', server)).differences,
    ).toEqual(['received after the end: {"jsonrpc":"2.0","id":1,"result":{}}'])
    expect(
      (
        await playTranscript(
          '> {"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}\n< {"jsonrpc":"2.0","id":9007199254740992,"result":{}}',
          server,
        )
      ).differences,
    ).toHaveLength(1)
  })
})

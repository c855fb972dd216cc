import { describe, expect, it } from 'vitest'
import {
  type Call,
  RpcError,
  type ServerOptions,
  type Tool,
  ToolError,
  createServer,
  result,
  tool,
} from '../../src/index.js'
import { answers, call, drive, initialize } from '../drive.js'
import { serveInOneTurn } from '../clock.js'

serveInOneTurn()

const serverOf = (tools: Tool[], options: Partial<ServerOptions> = {}) =>
  createServer({ name: 'test', version: '1.0.0', tools, ...options })
const open = (revision = '2025-11-25') => initialize(revision)

/** The result or error of one call of a tool with this `run`. */
async function outcome(
  run: (input: never, call: Call) => unknown,
  definition: Partial<Tool> = {},
  options: Partial<ServerOptions> = {},
  revision?: string,
): Promise<unknown> {
  const server = serverOf(
    [
      {
        name: 'it',
        input: { type: 'object' },
        run: run as NonNullable<Tool['run']>,
        ...definition,
      },
    ],
    options,
  )
  const [, answer] = (await answers(server, [...open(revision), call('it')])) as [
    unknown,
    { result?: unknown; error?: unknown },
  ]
  return answer.result ?? answer.error
}
const text = (value: string, isError = false) => ({
  content: [{ type: 'text', text: value }],
  isError,
})

describe('what a handler returns', () => {
  const image = { type: 'image', data: 'AAAA', mimeType: 'image/png' } as const
  const circular: Record<string, unknown> = {}
  circular['self'] = circular
  const cases: [string, () => unknown, unknown][] = [
    ['a string', () => 'hi', text('hi')],
    ['an empty string', () => '', text('')],
    ['a promise', () => Promise.resolve('hi'), text('hi')],
    [
      'a thenable',
      () => ({ then: (resolve: (value: string) => void) => resolve('hi') }),
      text('hi'),
    ],
    ['nothing', () => undefined, { content: [], isError: false }],
    ['null', () => null, text('null')],
    ['a number', () => 5, text('5')],
    ['an object', () => ({ a: [1] }), text('{"a":[1]}')],
    ['a content block', () => image, { content: [image], isError: false }],
    [
      'several blocks',
      () => [{ type: 'text', text: 'a' }, image],
      { content: [{ type: 'text', text: 'a' }, image], isError: false },
    ],
    [
      'strings among blocks',
      () => ['a', image],
      { content: [{ type: 'text', text: 'a' }, image], isError: false },
    ],
    [
      'several strings',
      () => ['a', 'b'],
      { content: [...text('a').content, ...text('b').content], isError: false },
    ],
    ['an array of strings and others', () => ['a', 1], text('["a",1]')],
    ['an empty array', () => [], text('[]')],
    [
      'an object that resembles a block',
      () => ({ type: 'text', text: 5 }),
      text('{"type":"text","text":5}'),
    ],
    ['a block without data', () => ({ type: 'image' }), text('{"type":"image"}')],
    ['a block of an unknown type', () => ({ type: 'video' }), text('{"type":"video"}')],
    ['a function', () => () => 1, text('null')],
    [
      'a circular object',
      () => circular,
      expect.objectContaining({
        isError: true,
        content: [
          {
            type: 'text',
            text: expect.stringContaining(
              'Tool it failed: its result cannot be written as JSON',
            ) as unknown,
          },
        ],
      }),
    ],
    [
      'a bigint',
      () => 1n,
      text(
        'Tool it failed: its result cannot be written as JSON: Do not know how to serialize a BigInt',
        true,
      ),
    ],
    [
      'a nested bigint',
      () => Promise.resolve({ a: 1n }),
      text(
        'Tool it failed: its result cannot be written as JSON: Do not know how to serialize a BigInt',
        true,
      ),
    ],
    [
      'a branded result',
      () => result({ content: 'hi', meta: { 'x/y': 1 } }),
      { ...text('hi'), _meta: { 'x/y': 1 } },
    ],
    [
      'a branded error',
      () => result({ content: ['a', image], isError: true }),
      { content: [{ type: 'text', text: 'a' }, image], isError: true },
    ],
    [
      'a branded value',
      () => result({ value: { a: 1 } }),
      { ...text('{"a":1}'), structuredContent: { a: 1 } },
    ],
    [
      'a branded result with invalid content',
      () => result({ content: { type: 'nope' } as never }),
      text(
        'Tool it failed: content[0] is neither a string nor a content block: its "type" is "nope"; it must be one of text, image, audio, resource_link, resource',
        true,
      ),
    ],
    [
      'a ToolError',
      () => {
        throw new ToolError('no such city')
      },
      text('no such city', true),
    ],
    [
      'a rejected ToolError',
      () => Promise.reject(new ToolError('no such city')),
      text('no such city', true),
    ],
    [
      'an RpcError',
      () => {
        throw new RpcError(-32050, 'custom', { a: 1 })
      },
      { code: -32050, message: 'custom', data: { a: 1 } },
    ],
    [
      'an RpcError with data that is not JSON',
      () => {
        throw new RpcError(-32050, 'custom', 1n)
      },
      { code: -32050, message: 'custom' },
    ],
    [
      'an exception',
      () => {
        throw new Error('boom')
      },
      text('Tool it failed: boom', true),
    ],
    [
      'a rejection',
      async () => {
        throw new Error('boom')
      },
      text('Tool it failed: boom', true),
    ],
    [
      'throwing null',
      () => {
        throw null
      },
      text('Tool it failed: it threw a value that is not an Error', true),
    ],
    [
      'throwing a string',
      () => {
        throw 'oops'
      },
      text('Tool it failed: oops', true),
    ],
    [
      'throwing undefined',
      () => {
        throw undefined
      },
      text('Tool it failed: it threw a value that is not an Error', true),
    ],
    [
      'rejecting with an object without a prototype',
      () => Promise.reject(Object.create(null) as Error),
      text('Tool it failed: it threw a value that is not an Error', true),
    ],
    [
      'a value whose toJSON throws',
      () => ({
        toJSON() {
          throw new Error('nope')
        },
      }),
      text('Tool it failed: its result cannot be written as JSON: nope', true),
    ],
    [
      'a getter that throws',
      () => ({
        get then() {
          throw new Error('trap')
        },
      }),
      text('Tool it failed: trap', true),
    ],
    [
      'a block with _meta that is not JSON',
      () => ({ type: 'text', text: 'x', _meta: { a: 1n } }),
      { code: -32603, message: 'Internal error: the result cannot be written as JSON' },
    ],
  ]
  it.each(cases)('%s', async (_, run, expected) => {
    expect(await outcome(run)).toEqual(expected)
  })

  it('reports exceptions as protocol errors with unexpectedErrors: protocol', async () => {
    const options = { unexpectedErrors: 'protocol' } as const
    expect(
      await outcome(
        () => {
          throw new Error('boom')
        },
        {},
        options,
      ),
    ).toEqual({ code: -32603, message: 'Tool it failed: boom' })
    expect(
      await outcome(() => Promise.reject(new Error('boom')), { timeout: 1000 }, options),
    ).toEqual({
      code: -32603,
      message: 'Tool it failed: boom',
    })
    expect(
      await outcome(
        () => {
          throw new ToolError('told')
        },
        {},
        options,
      ),
    ).toEqual(text('told', true))
  })

  it('logs the exception with the request id, and shows no stack', async () => {
    const server = serverOf([
      tool({
        name: 'it',
        run: () => {
          throw new Error('boom')
        },
      }),
    ])
    const { output, log } = await drive(server, [...open(), call('it', {}, 'r7')].join('\n'))
    expect(JSON.parse(log)).toMatchObject({
      level: 'error',
      message: 'Tool it failed',
      requestId: 'r7',
      error: expect.stringContaining('tools.test.ts') as unknown,
    })
    expect(output).not.toContain('tools.test.ts')
  })
})

describe('output schemas', () => {
  const output = {
    type: 'object',
    properties: { sum: { type: 'number' } },
    required: ['sum'],
  } as const
  it('sends the value as structured content and as text', async () => {
    expect(await outcome(() => ({ sum: 3 }), { output })).toEqual({
      ...text('{"sum":3}'),
      structuredContent: { sum: 3 },
    })
  })
  it('uses the value as is, even if it looks like content', async () => {
    const wide = { type: 'object' } as const
    expect(await outcome(() => ({ type: 'text', text: 'x' }), { output: wide })).toEqual({
      ...text('{"type":"text","text":"x"}'),
      structuredContent: { type: 'text', text: 'x' },
    })
  })
  it('sends content next to the value', async () => {
    expect(
      await outcome(() => result({ value: { sum: 3 }, content: 'three' }), { output }),
    ).toEqual({
      ...text('three'),
      structuredContent: { sum: 3 },
    })
  })
  it('reports an invalid value as a failed tool and logs it', async () => {
    expect(await outcome(() => ({ sum: 'x' }), { output })).toEqual(
      text(
        'Tool it failed: its result does not match its output schema: sum must be a number, not "x"',
        true,
      ),
    )
    expect(await outcome(async () => undefined, { output })).toEqual(
      text(
        'Tool it failed: its result does not match its output schema: must be an object, not undefined',
        true,
      ),
    )
  })
  it('does not validate error results', async () => {
    expect(await outcome(() => result({ content: 'no', isError: true }), { output })).toEqual(
      text('no', true),
    )
    expect(
      await outcome(
        () => {
          throw new ToolError('no')
        },
        { output },
      ),
    ).toEqual(text('no', true))
  })
  it('validates with a schema that needs the full validator', async () => {
    const either = { type: 'object', oneOf: [{ required: ['a'] }, { required: ['b'] }] } as const
    expect(await outcome(() => ({ a: 1 }), { output: either })).toMatchObject({
      structuredContent: { a: 1 },
    })
    expect(await outcome(() => ({}), { output: either })).toMatchObject({ isError: true })
  })
})

describe('arguments', () => {
  it('rejects with a protocol error with invalidArguments: protocol', async () => {
    const server = serverOf(
      [tool({ name: 'it', input: { type: 'object', required: ['a'] }, run: () => '' })],
      {
        invalidArguments: 'protocol',
      },
    )
    expect((await answers(server, [...open(), call('it')]))[1]).toEqual({
      jsonrpc: '2.0',
      id: 1,
      error: {
        code: -32602,
        message: 'Invalid arguments for it: a is required',
        data: { issues: [{ path: 'a', message: 'is required' }] },
      },
    })
  })
  it('passes arguments to the handler unchanged', async () => {
    expect(await outcome((input) => JSON.stringify(input))).toEqual(text('{}'))
  })
  it('handle serves all tools without run', async () => {
    const server = serverOf(
      [
        { name: 'a', input: { type: 'object' } },
        { name: 'b', input: { type: 'object' } },
      ],
      { handle: (name, input) => ({ name, input }) },
    )
    expect((await answers(server, [...open(), call('b', { x: 1 })]))[1]).toMatchObject({
      result: text('{"name":"b","input":{"x":1}}'),
    })
  })
})

describe('listing', () => {
  it('keeps the order of definition and does not change schemas', async () => {
    const input = {
      type: 'object',
      properties: { a: { $ref: '#/$defs/a' } },
      $defs: { a: { type: 'string' } },
      'x-own': [1],
    } as const
    const server = serverOf([
      tool({ name: 'zeta', description: 'last letter', input, run: () => '' }),
      tool({ name: 'alpha', run: () => '' }),
    ])
    expect(
      (await answers(server, [...open(), '{"jsonrpc":"2.0","id":2,"method":"tools/list"}']))[1],
    ).toEqual({
      jsonrpc: '2.0',
      id: 2,
      result: {
        tools: [
          { name: 'zeta', description: 'last letter', inputSchema: input },
          { name: 'alpha', inputSchema: { type: 'object', additionalProperties: false } },
        ],
      },
    })
  })
  it('omits tools with visible: false', async () => {
    const server = serverOf([
      tool({ name: 'secret', visible: ({ info }) => info?.name === 'friend', run: () => 'psst' }),
    ])
    expect(
      await answers(server, [
        ...open(),
        '{"jsonrpc":"2.0","id":2,"method":"tools/list"}',
        call('secret', {}, 3),
      ]),
    ).toMatchObject([
      {},
      { result: { tools: [] } },
      { error: { code: -32602, message: 'Unknown tool: secret' } },
    ])
    const friend = open().map((line) => line.replace('"name":"test"', '"name":"friend"'))
    expect(
      await answers(server, [
        ...friend,
        '{"jsonrpc":"2.0","id":2,"method":"tools/list"}',
        call('secret', {}, 3),
      ]),
    ).toMatchObject([{}, { result: { tools: [{ name: 'secret' }] } }, { result: text('psst') }])
  })
  it('has no tools capability without tools', async () => {
    expect((await answers(serverOf([]), open()))[0]).toMatchObject({ result: { capabilities: {} } })
  })
})

describe('limits', () => {
  it('timeout aborts the signal and returns an error result', async () => {
    let reason: unknown
    const run = (_: never, { signal }: Call) =>
      new Promise((resolve) =>
        signal.addEventListener('abort', () => resolve((reason = signal.reason))),
      )
    expect(await outcome(run, { timeout: 20 })).toEqual(
      text('it did not finish within 20 ms and was stopped', true),
    )
    expect(reason).toEqual(new Error('it did not finish within 20 ms and was stopped'))
  })
  it('concurrency limits the calls that run, in order', async () => {
    let running = 0
    let most = 0
    const order: unknown[] = []
    const server = serverOf([
      tool({
        name: 'it',
        concurrency: 2,
        input: { type: 'object' },
        async run({ n }: Record<string, unknown>) {
          most = Math.max(most, ++running)
          order.push(n)
          await new Promise((resolve) => setImmediate(resolve))
          running--
          return String(n)
        },
      }),
    ])
    const calls = Array.from({ length: 10 }, (_, n) => call('it', { n }, n))
    expect(await answers(server, [...open(), ...calls])).toHaveLength(11)
    expect(most).toBe(2)
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  })
  it('a cancelled call leaves the queue', async () => {
    const ran: unknown[] = []
    const server = serverOf([
      tool({
        name: 'it',
        concurrency: 1,
        input: { type: 'object' },
        async run({ n }: Record<string, unknown>) {
          ran.push(n)
          await new Promise((resolve) => setImmediate(resolve))
          return String(n)
        },
      }),
    ])
    const cancel = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}'
    const came = await answers(server, [
      ...open(),
      call('it', { n: 1 }, 1),
      call('it', { n: 2 }, 2),
      call('it', { n: 3 }, 3),
      cancel,
    ])
    expect(came.slice(1)).toMatchObject([{ id: 1 }, { id: 3 }])
    expect(ran).toEqual([1, 3])
  })
  it('a cancelled call gets no response', async () => {
    let reason: unknown
    const server = serverOf([
      tool({
        name: 'it',
        run: (_, { signal }) =>
          new Promise((resolve) =>
            signal.addEventListener('abort', () => resolve((reason = signal.reason))),
          ),
      }),
    ])
    const cancel =
      '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9007199254740993,"reason":"no longer needed"}}'
    const big = call('it', {}, 1).replace('"id":1', '"id":9007199254740993')
    expect(
      await answers(server, [...open(), big, cancel, '{"jsonrpc":"2.0","id":2,"method":"ping"}']),
    ).toMatchObject([{ id: 'init' }, { id: 2 }])
    expect(reason).toMatchObject({ message: 'no longer needed', code: 'CANCELLED' })
  })
  it('rejects an id in use, and accepts it after the response', async () => {
    const server = serverOf([
      tool({
        name: 'slow',
        run: () => new Promise((resolve) => setImmediate(() => resolve('done'))),
      }),
    ])
    const came = await answers(server, [
      ...open(),
      call('slow', {}, 5),
      call('slow', {}, 5),
      call('slow', {}, '5'),
    ])
    expect(came.slice(1)).toMatchObject([
      {
        id: 5,
        error: {
          code: -32600,
          message: 'Invalid Request: a request with this id is still in progress',
        },
      },
      { id: 5, result: text('done') },
      { id: '5', result: text('done') },
    ])
  })
})

describe('order', () => {
  it('starts calls in the order of arrival; a synchronous handler ends before the next call', async () => {
    const log: string[] = []
    const server = serverOf([
      tool({
        name: 'write',
        input: { type: 'object' },
        run: ({ v }: Record<string, unknown>) => (log.push(`write ${String(v)}`), 'ok'),
      }),
      tool({ name: 'read', run: () => log.join() }),
      tool({
        name: 'slow',
        async run() {
          log.push('slow')
          await new Promise((resolve) => setImmediate(resolve))
          return 'slow'
        },
      }),
      tool({
        name: 'complex',
        input: { type: 'object', not: { required: ['x'] } },
        run: () => (log.push('complex'), 'ok'),
      }),
    ])
    const came = await answers(server, [
      ...open(),
      call('slow', {}, 1),
      call('write', { v: 1 }, 2),
      call('complex', {}, 3),
      call('read', {}, 4),
    ])
    expect(came.slice(1)).toMatchObject([
      { id: 2 },
      { id: 3 },
      { id: 4, result: text('slow,write 1,complex') },
      { id: 1 },
    ])
  })
})

describe('progress', () => {
  const server = serverOf([
    tool({
      name: 'it',
      async run(_, call) {
        call.progress(1, 4, 'one')
        call.progress(2, 4, 'two')
        await new Promise((resolve) => setImmediate(resolve))
        call.progress(2)
        call.progress(1)
        call.progress(Number.NaN)
        await new Promise((resolve) => setImmediate(resolve))
        call.progress(4, 4)
        void Promise.resolve().then(() => setImmediate(() => call.progress(5)))
        return 'done'
      },
    }),
  ])
  const asking = (token: string) =>
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"it","_meta":{"progressToken":${token}}}}`
  it('sends the last value of each turn, increasing, with the token, nothing after the response', async () => {
    const came = await answers(server, [...open('2025-03-26'), asking('0')])
    expect(came.slice(1)).toEqual([
      {
        jsonrpc: '2.0',
        method: 'notifications/progress',
        params: { progressToken: 0, progress: 2, total: 4, message: 'two' },
      },
      {
        jsonrpc: '2.0',
        method: 'notifications/progress',
        params: { progressToken: 0, progress: 4, total: 4 },
      },
      { jsonrpc: '2.0', id: 1, result: text('done') },
    ])
  })
  it('omits the message in revisions without it', async () => {
    expect((await answers(server, [...open('2024-11-05'), asking('"t"')]))[1]).toEqual({
      jsonrpc: '2.0',
      method: 'notifications/progress',
      params: { progressToken: 't', progress: 2, total: 4 },
    })
  })
  it('preserves every digit of a large token', async () => {
    expect(
      (await drive(server, [...open(), asking('9007199254740993')].join('\n'))).output,
    ).toContain('"params":{"progressToken":9007199254740993,"progress":2,')
  })
  it('sends nothing without a token', async () => {
    expect(await answers(server, [...open(), call('it')])).toHaveLength(2)
  })
})

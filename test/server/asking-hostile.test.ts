import { describe, expect, it, vi } from 'vitest'
import { onStillClock } from '../clock.js'
import { type ConnectOptions, connect, memory } from '../../src/client.js'
import {
  type Call,
  type Server,
  type StateOptions,
  type Tool,
  RpcError,
  createServer,
  form,
  resource,
  roots,
  sample,
  tool,
} from '../../src/index.js'
import { revisions } from '../../src/protocol/revisions/index.js'
import { digest } from '../../src/server/asking/state.js'
import { connectInMemory } from '../../src/testing.js'
import { answers, call as calling, initialize } from '../drive.js'

/* Asking, by handlers and clients that do what they should not, or all at once. */

const NEWEST = revisions.filter(({ asking }) => asking === 'result').map(({ id }) => id)[0] ?? ''
const BY_REQUEST = revisions
  .filter(({ asking, fields }) => asking === 'request' && fields.formText.length > 0)
  .map(({ id }) => id)
const ALL_FORMS = [...BY_REQUEST, NEWEST]

const Name = {
  type: 'object',
  properties: { name: { type: 'string' } },
  required: ['name'],
} as const
const name = (message = 'Who?') => form({ message, schema: Name })
const accept = (content: Record<string, string | number | boolean | string[]>) => ({
  action: 'accept' as const,
  content,
})
const ada = accept({ name: 'Ada' })
const text = (result: { content: readonly unknown[] }) =>
  (result.content[0] as { text: string }).text
const turn = () => new Promise((resolve) => setTimeout(resolve, 0))

type Facts = Partial<Tool> & { state?: StateOptions; serverName?: string }

function serverOf(
  run: (call: Call, input: { n?: number; list?: readonly number[] }) => unknown,
  facts: Facts = {},
): Server {
  const { state = {}, serverName = 'asking', ...rest } = facts
  const input = {
    type: 'object',
    properties: { n: { type: 'number' }, list: { type: 'array', items: { type: 'number' } } },
  } as const
  const it = tool({ name: 'it', input, run: (given, call) => run(call, given) })
  return createServer({ name: serverName, version: '1', tools: [{ ...it, ...rest }], state })
}

async function callIt(
  server: Server,
  revision: string,
  answers: ConnectOptions,
  args: Record<string, unknown> = {},
) {
  await using client = await connect(memory(server), { revision, ...answers })
  return await client.callTool('it', args)
}

interface Answer {
  id?: number
  method?: string
  result?: {
    resultType: string
    requestState?: string
    inputRequests?: Record<string, { method: string }>
    content?: [{ text: string }]
  }
  error?: { code: number; message: string }
}

/** A connection by hand, on which requests describe themselves; what came is kept. */
function open(server: Server, capabilities: object = { elicitation: {} }) {
  const reports: string[] = []
  const channel = connectInMemory(server, { report: ({ message }) => void reports.push(message) })
  const waiting = new Map<number, (answer: Answer) => void>()
  let ids = 0
  channel.receive({
    frame(frame) {
      const message = JSON.parse(frame) as Answer
      waiting.get(message.id ?? 0)?.(message)
    },
    garbage: () => {},
    closed: () => {},
  })
  const meta = {
    'io.modelcontextprotocol/protocolVersion': NEWEST,
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  }
  return {
    reports,
    cancel: (requestId: number) =>
      channel.send(
        JSON.stringify({
          jsonrpc: '2.0',
          method: 'notifications/cancelled',
          params: { requestId },
        }),
      ),
    send(params: Record<string, unknown> = {}, method = 'tools/call'): Promise<Answer> {
      const id = ++ids
      const answered = new Promise<Answer>((resolve) => waiting.set(id, resolve))
      const named = method === 'tools/call' ? { name: 'it', ...params } : params
      channel.send(
        JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...named, _meta: meta } }),
      )
      return answered
    },
  }
}

const retry = ({ result }: Answer, inputResponses: Record<string, unknown>) => ({
  inputResponses,
  requestState: result?.requestState,
})

describe('a digest', () => {
  it('tells apart what JSON would write alike, and takes members in any order', async () => {
    const alike = [
      'null',
      '1e400',
      '-1e400',
      '"\\u0000Infinity"',
      '"Infinity"',
      '0',
      '""',
      '"\\u0000"',
      '[]',
      '{}',
    ]
    const digests = await Promise.all(
      alike.map(async (text) => await digest({ n: JSON.parse(text) as unknown })),
    )
    expect(new Set(digests).size).toBe(alike.length)
    expect(await digest({ a: 1, b: [{ c: 2, d: 3 }] })).toBe(
      await digest({ b: [{ d: 3, c: 2 }], a: 1 }),
    )
  })
})

describe('what is no question', () => {
  it.each(ALL_FORMS)('is told how to ask (%s)', async (revision) => {
    const wrong: unknown[] = [
      name(),
      'Who?',
      { who: 'Who?' },
      { who: undefined },
      { who: { kind: 'guess' } },
      [1],
    ]
    for (const each of wrong) {
      const server = serverOf((call) => call.ask(each as { who: ReturnType<typeof name> }))
      expect(text(await callIt(server, revision, { elicit: () => ada }))).toContain(
        'call.ask({ name: form({ message, schema }) })',
      )
    }
  })
})

describe('what a handler does not wait for', () => {
  const run = async (call: Call, { n = 0 }) => {
    if (n === 1) {
      const a = call.ask({ a: name('A?') })
      const b = call.ask({ b: name('B?') })
      return (await a).a.name + (await b).b.name
    }
    const broken = call.step(
      'broken',
      async () => (await turn(), Promise.reject(new Error('broken'))),
    )
    await call.ask({ who: name() })
    return String(await broken)
  }

  it.each([1, 2])('does not end the process when the call is suspended: %i', async (n) => {
    const unhandled: unknown[] = []
    const note = (reason: unknown) => void unhandled.push(reason)
    // The runner would take it for its own affair.
    const others = process.listeners('unhandledRejection')
    process.removeAllListeners('unhandledRejection').on('unhandledRejection', note)
    try {
      expect((await open(serverOf(run)).send({ arguments: { n } })).result?.resultType).toBe(
        'input_required',
      )
      await turn()
      await turn()
    } finally {
      process.off('unhandledRejection', note)
      for (const other of others) process.on('unhandledRejection', other)
    }
    expect(unhandled).toEqual([])
  })
})

describe('a place that a call gives up while it asks', () => {
  it.each(BY_REQUEST)(
    'is taken again once, however many questions it asked at once: %s',
    async (revision) => {
      const server = serverOf(
        async (call) => {
          const [a, b] = await Promise.all([
            call.ask({ a: name('A?') }),
            call.ask({ b: name('B?') }),
          ])
          return a.a.name + b.b.name
        },
        { concurrency: 1, timeout: 20_000 },
      )
      const elicit = async () => (await turn(), ada)
      for (let time = 0; time < 3; time++)
        expect(text(await callIt(server, revision, { elicit }))).toBe('AdaAda')
    },
  )

  it.each(BY_REQUEST)(
    'and its time stands still until the last of its questions is answered: %s',
    (revision) =>
      onStillClock(async (pass) => {
        const server = serverOf(
          async (call) => {
            const [a, b] = await Promise.all([
              call.ask({ a: name('A?') }),
              call.ask({ b: name('B?') }),
            ])
            return a.a.name + b.b.name
          },
          { timeout: 150 },
        )
        const elicit = async ({ message }: { message: string }) => {
          if (message === 'B?') await pass(300)
          return ada
        }
        expect(text(await callIt(server, revision, { elicit }))).toBe('AdaAda')
      }),
  )
})

describe('a question', () => {
  it.each(BY_REQUEST)('is not put for a call that has been answered: %s', async (revision) => {
    let late: Promise<unknown> = Promise.resolve()
    let goOn = () => {}
    const answered = new Promise<void>((resolve) => (goOn = resolve))
    const server = serverOf((call) => {
      late = answered.then(() => call.ask({ who: name() }))
      late.catch(() => {})
      return 'done'
    })
    let asked = 0
    await using client = await connect(memory(server), { revision, elicit: () => (asked++, ada) })
    expect(text(await client.callTool('it'))).toBe('done')
    goOn()
    await expect(late).rejects.toMatchObject({ code: 'CALL_ENDED' })
    await client.request('ping')
    expect(asked).toBe(0)
  })

  it.each(BY_REQUEST)(
    'that is still open when its call is answered is taken back: %s',
    async (revision) => {
      let asked = () => {}
      const shown = new Promise<void>((resolve) => (asked = resolve))
      const server = serverOf(async (call) => {
        await Promise.race([call.ask({ who: name() }), shown])
        return 'done'
      })
      let signal: AbortSignal | undefined
      await using client = await connect(memory(server), {
        revision,
        elicit: (_, given) => (({ signal } = given), asked(), new Promise(() => {})),
      })
      expect(text(await client.callTool('it'))).toBe('done')
      await client.request('ping')
      expect(signal?.aborted).toBe(true)
    },
  )
})

describe('a state', () => {
  it('of one resource is refused for another, whatever else the request says', async () => {
    const read = async (_: unknown, call: Call) => (await call.ask({ who: name() })).who.name
    const server = createServer({
      name: 'asking',
      version: '1',
      resources: [resource({ uri: 'x:a', read }), resource({ uri: 'x:b', read })],
    })
    const { send } = open(server)
    const first = await send({ uri: 'x:a', name: 'same' }, 'resources/read')
    expect(first.result?.resultType).toBe('input_required')
    const swapped = await send(
      { uri: 'x:b', name: 'same', ...retry(first, { who: ada }) },
      'resources/read',
    )
    expect(swapped.error?.code).toBe(-32602)
    const right = await send({ uri: 'x:a', ...retry(first, { who: ada }) }, 'resources/read')
    expect(right.result?.resultType).toBe('complete')
  })

  it('of one server is refused by another that has its keys', async () => {
    const state = { keys: ['a secret of more than 32 characters, shared'] }
    const run = async (call: Call) => (await call.ask({ who: name() })).who.name
    const first = await open(serverOf(run, { state, serverName: 'one' })).send()
    const taken = await open(serverOf(run, { state, serverName: 'two' })).send(
      retry(first, { who: ada }),
    )
    expect(taken.error?.code).toBe(-32602)
  })

  it('belongs to the arguments as they came, whatever the handler makes of them', async () => {
    const server = serverOf(async (call, input) => {
      const { list = [] } = input
      ;(list as number[]).sort((a, b) => a - b)
      return `${(await call.ask({ who: name() })).who.name} ${list.join()}`
    })
    const { send } = open(server)
    const args = { arguments: { list: [2, 1] } }
    const second = await send({ ...args, ...retry(await send(args), { who: ada }) })
    expect(second.result?.content?.[0].text).toBe('Ada 1,2')
  })
})

describe('names that objects have by themselves', () => {
  it.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])(
    'can be keys of questions: %s',
    async (key) => {
      const server = serverOf(async (call) => {
        const first = await call.ask({ [key]: name('First?') })
        const second = await call.ask({ second: name('Second?') })
        const given = Object.hasOwn(first, key) ? first[key]?.name : undefined
        return `${given} ${second.second.name}`
      })
      for (const revision of ALL_FORMS)
        expect(text(await callIt(server, revision, { elicit: () => ada }))).toBe('Ada Ada')
    },
  )
})

describe('answers without a state', () => {
  it('are good for one question under each key', async () => {
    const server = serverOf(async (call) => {
      await call.ask({ ok: name('Delete A?') })
      await call.ask({ ok: name('Delete B?') })
      return 'both deleted'
    })
    const { result } = await open(server).send({ inputResponses: { ok: ada } })
    expect(result).toMatchObject({
      resultType: 'input_required',
      inputRequests: { ok: { params: { message: 'Delete B?' } } },
    })
  })
})

describe('a middleware that asks', () => {
  it.each(ALL_FORMS)('is run again with its answers, under the same key: %s', async (revision) => {
    const server = serverOf(
      async (call) => `${call.key} ${(await call.ask({ who: name() })).who.name}`,
    )
    const keys: string[] = []
    const attempts: number[] = []
    server.use(async (call, next) => {
      if (call.method !== 'tools/call') return await next()
      keys.push(call.key)
      attempts.push(call.attempt)
      await call.ask({ sure: name('Sure?') })
      return await next()
    })
    const result = text(await callIt(server, revision, { elicit: () => ada }))
    expect(result).toBe(`${keys[0]} Ada`)
    expect(new Set(keys).size).toBe(1)
    expect(attempts).toEqual(revision === NEWEST ? [1, 2, 3] : [1])
  })

  it('sees that a state is refused', async () => {
    const server = serverOf((call) => call.ask({ who: name() }))
    const seen: unknown[] = []
    server.use(async (_, next) => {
      try {
        return await next()
      } catch (error) {
        seen.push(error)
        throw error
      }
    })
    expect((await open(server).send({ requestState: 'x' })).error?.code).toBe(-32602)
    expect(seen).toMatchObject([{ code: -32602 }])
  })
})

describe('where the newest revision cannot ask', () => {
  it('a list is not answered with questions', async () => {
    const server = createServer({
      name: 'asking',
      version: '1',
      resources: [
        resource({
          uri: 'x:{id}',
          read: () => '',
          list: async (call) => [{ uri: 'x:1', name: (await call.ask({ who: name() })).who.name }],
        }),
      ],
    })
    const { send, reports } = open(server)
    expect((await send({}, 'resources/list')).error?.code).toBe(-32603)
    expect(reports).toEqual(['resources/list failed'])
  })
})

describe('while a call is being suspended', () => {
  it('every step that has begun is recorded, at whatever moment it begins', async () => {
    // At any distance from the moment at which the answer is fixed.
    for (let distance = 0; distance < 60; distance++) {
      const done: string[] = []
      const server = serverOf(async (call) => {
        let begin = () => {}
        const begun = new Promise<void>((resolve) => (begin = resolve))
        const second = begun.then(() =>
          call.step('second', async () => (done.push('second'), await turn(), 2)),
        )
        second.catch(() => {})
        const first = call.step('first', async () => {
          for (let turns = 0; turns < 3; turns++) await turn()
          done.push('first')
          begin()
          for (let ticks = 0; ticks < distance; ticks++) await Promise.resolve()
          return 1
        })
        if (call.attempt > 1) begin()
        await Promise.all([first, call.ask({ who: name() })])
        await second
        return 'done'
      })
      const { send } = open(server)
      const last = await send(retry(await send(), { who: ada }))
      expect(last.result?.content?.[0].text).toBe('done')
      expect([distance, ...done.toSorted()]).toEqual([distance, 'first', 'second'])
    }
  })

  it('a question that comes late is not put to a client that cannot answer it', async () => {
    const server = serverOf(async (call) => {
      const slow = call.step('slow', async () => {
        for (let turns = 0; turns < 5; turns++) await turn()
        return 1
      })
      const late = (async () => {
        for (let turns = 0; turns < 3; turns++) await turn()
        await call.ask({ folders: roots() })
      })()
      await Promise.all([slow, late, call.ask({ who: name() })])
    })
    const { result, error } = await open(server).send()
    expect(Object.values(result?.inputRequests ?? {}).map(({ method }) => method)).not.toContain(
      'roots/list',
    )
    expect(error?.code).toBe(-32021)
  })

  it('a question that was given up with others is not put', async () => {
    const server = serverOf(async (call) => {
      try {
        await call.ask({
          a: name('Old?'),
          b: form({
            message: '',
            schema: { type: 'object', properties: { bad: { type: 'object' } } },
          }),
        })
      } catch {
        return (await call.ask({ a: name('New?') })).a.name
      }
      return 'never'
    })
    const { send } = open(server)
    const first = await send()
    expect(first.result).toMatchObject({ inputRequests: { a: { params: { message: 'New?' } } } })
    expect((await send(retry(first, { a: ada }))).result?.content?.[0].text).toBe('Ada')
  })

  it('and cannot be, since its state is too large, nothing is said of going on', async () => {
    const server = serverOf((call) => call.ask({ who: name() }), { state: { maxBytes: 50 } })
    const { send, reports } = open(server)
    expect((await send()).result?.content?.[0].text).toContain(
      'The state of this call is too large',
    )
    expect(reports).toEqual(['Tool it failed'])
  })
})

describe('a step', () => {
  it.each(ALL_FORMS)(
    'may call another server that has steps and questions of its own: %s',
    async (revision) => {
      const inner = serverOf(async (call) => String(await call.step('same', () => 7)))
      const server = serverOf((call) =>
        call.step('same', async () => text(await callIt(inner, revision, {}))),
      )
      expect(text(await callIt(server, revision, {}))).toBe('7')
    },
  )

  it.each(ALL_FORMS)('is told when the time of its call is over: %s', async (revision) => {
    const told: unknown[] = []
    const server = serverOf(
      async (call) => {
        await call.ask({ who: name() })
        return await call.step('slow', async (signal) => {
          await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
          told.push(signal.reason)
          return 1
        })
      },
      // Long enough for a slow machine to come to the step.
      { timeout: 1000 },
    )
    expect(text(await callIt(server, revision, { elicit: () => ada }))).toContain(
      'did not finish within 1000 ms',
    )
    await expect.poll(() => told).toHaveLength(1)
  })
})

const MODEL = {
  messages: [{ role: 'user' as const, content: { type: 'text' as const, text: '?' } }],
  maxTokens: 1,
}

describe('the model of a client', () => {
  it.each(BY_REQUEST)('may be refused where the question is optional: %s', async (revision) => {
    const server = serverOf(async (call, { n }) => {
      const { it } = await call.ask({ it: sample(MODEL, { optional: n === 1 }) })
      return it === undefined ? 'undefined' : it.model
    })
    const refuse = () => {
      throw new RpcError(-1, 'User rejected sampling request')
    }
    expect(text(await callIt(server, revision, { sample: refuse }, { n: 1 }))).toBe('undefined')
    expect(text(await callIt(server, revision, { sample: refuse }, { n: 0 }))).toContain(
      'The user declined "it"',
    )
  })

  it.each([
    { role: 'assistant', model: 'm', content: { type: 'text' } },
    { role: 'assistant', model: 'm', content: { type: 'text', text: 5 } },
    { role: 'assistant', model: 'm', content: [{ type: 'tool_use', id: 1, name: 'x', input: {} }] },
    { role: 'assistant', model: 'm', content: { type: 'image', data: 'AAAA' } },
    { role: 'assistant', model: 'm', content: { type: 'telepathy' } },
    { role: 'assistant', model: 'm', content: { type: 'text', text: '' }, stopReason: {} },
  ])('has not answered with %j', async (wrong) => {
    const server = serverOf(async (call) => JSON.stringify(await call.ask({ it: sample(MODEL) })))
    const { send } = open(server, { sampling: {} })
    const second = await send(retry(await send(), { it: wrong }))
    expect(second.result?.resultType).toBe('input_required')
  })
})

describe('a connection that ends', () => {
  it.each(BY_REQUEST)('does not wait for answers that cannot come: %s', async (revision) => {
    const server = serverOf((call) => call.ask({ who: name() }))
    const opening = initialize(revision).map((line) =>
      line.replace('"capabilities":{}', '"capabilities":{"elicitation":{}}'),
    )
    const given = await answers(server, [...opening, calling('it', {}, 7)])
    expect(given.at(-1)).toMatchObject({
      id: 7,
      result: {
        isError: true,
        content: [{ text: expect.stringContaining('no response can arrive') }],
      },
    })
  })
})

describe('a check of an answer that never ends', () => {
  it('is not waited for once the call is cancelled', async () => {
    const schema = {
      '~standard': {
        version: 1 as const,
        vendor: 'slow',
        validate: () => new Promise<never>(() => {}),
        jsonSchema: { input: () => ({ ...Name }), output: () => ({ ...Name }) },
      },
    }
    const server = serverOf((call) =>
      Promise.all([call.ask({ slow: form({ message: '?', schema }) }), call.ask({ who: name() })]),
    )
    const { send, cancel } = open(server)
    void send({ inputResponses: { slow: ada } })
    await turn()
    const timers = vi.spyOn(globalThis, 'setTimeout')
    try {
      for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve))
      cancel(1)
      for (let turns = 0; turns < 5; turns++) await turn()
      timers.mockClear()
      await turn()
      await turn()
      expect(timers.mock.calls).toHaveLength(2)
    } finally {
      timers.mockRestore()
    }
  })
})

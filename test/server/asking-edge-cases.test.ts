import { describe, expect, it, vi } from 'vitest'
import { onStillClock } from '../clock.js'
import { type ConnectOptions, type ElicitParams, connect, memory } from '../../src/client.js'
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

/* call.ask with invalid use by handlers and clients, and with concurrency. */

const NEWEST =
  revisions.filter(({ asksBy: asking }) => asking === 'result').map(({ id }) => id)[0] ?? ''
const BY_REQUEST = revisions
  .filter(({ asksBy: asking, fields }) => asking === 'request' && fields.formString.length > 0)
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

/** A connection that sends stateless requests and keeps every received message. */
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
    malformed: () => {},
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
  it('distinguishes values that JSON.stringify writes alike, and ignores the order of members', async () => {
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

describe('call.ask with an invalid question', () => {
  it.each(ALL_FORMS)('throws a TypeError with an example (%s)', async (revision) => {
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

describe('promises that a handler does not await', () => {
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

  it.each([1, 2])('cause no unhandled rejection when the call is suspended: %i', async (n) => {
    const unhandled: unknown[] = []
    const note = (reason: unknown) => void unhandled.push(reason)
    // Vitest would report it as its own error.
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

describe('the concurrency slot during call.ask', () => {
  it.each(BY_REQUEST)('is taken again once, with several questions: %s', async (revision) => {
    const server = serverOf(
      async (call) => {
        const [a, b] = await Promise.all([call.ask({ a: name('A?') }), call.ask({ b: name('B?') })])
        return a.a.name + b.b.name
      },
      { concurrency: 1, timeout: 20_000 },
    )
    const elicit = async () => (await turn(), ada)
    for (let time = 0; time < 3; time++)
      expect(text(await callIt(server, revision, { elicit }))).toBe('AdaAda')
  })

  it.each(BY_REQUEST)('the timeout is paused until the last question is answered: %s', (revision) =>
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
  it.each(BY_REQUEST)('is not sent after the response of its call: %s', async (revision) => {
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

  it.each(BY_REQUEST)('is cancelled if its call ends first: %s', async (revision) => {
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
  })
})

describe('requestState', () => {
  it('of one resource is rejected for another', async () => {
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

  it('of another server with the same keys is rejected', async () => {
    const state = { keys: ['a secret of more than 32 characters, shared'] }
    const run = async (call: Call) => (await call.ask({ who: name() })).who.name
    const first = await open(serverOf(run, { state, serverName: 'one' })).send()
    const taken = await open(serverOf(run, { state, serverName: 'two' })).send(
      retry(first, { who: ada }),
    )
    expect(taken.error?.code).toBe(-32602)
  })

  it('is bound to the arguments as received, even if the handler changes them', async () => {
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

describe.each(ALL_FORMS)('an accepted form without content in %s', (revision) => {
  const asked = async (properties: Record<string, { type: 'string' }>, required: string[]) => {
    let count = 0
    const schema = { type: 'object', properties, required } as const
    const server = serverOf(async (call) => {
      const { sure } = await call.ask({ sure: form({ message: 'Sure?', schema }) })
      return JSON.stringify(sure)
    })
    const elicit = () => {
      count++
      return count === 1 ? { action: 'accept' as const } : accept({ note: 'x' })
    }
    return [text(await callIt(server, revision, { elicit })), count]
  }

  it('has no fields', async () => {
    expect(await asked({}, [])).toEqual(['{}', 1])
    expect(await asked({ note: { type: 'string' } }, [])).toEqual(['{}', 1])
  })

  it('is asked again if a field is required', async () => {
    expect(await asked({ note: { type: 'string' } }, ['note'])).toEqual(['{"note":"x"}', 2])
  })
})

describe('names of Object.prototype', () => {
  it('can be fields of forms', async () => {
    const properties = JSON.parse('{"__proto__":{"type":"string"}}') as Record<string, object>
    const schema = { type: 'object' as const, properties, required: ['__proto__'] }
    const server = serverOf(async (call) =>
      JSON.stringify(await call.ask({ it: form({ message: 'Which?', schema }) })),
    )
    const content = JSON.parse('{"__proto__":"x"}') as Record<string, string>
    for (const revision of ALL_FORMS) {
      let shown = ''
      const elicit = ({ requestedSchema }: ElicitParams) => {
        shown = JSON.stringify(requestedSchema)
        return accept(content)
      }
      expect(text(await callIt(server, revision, { elicit }))).toBe('{"it":{"__proto__":"x"}}')
      expect(shown).toContain('"__proto__":{"type":"string"}')
    }
  })

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

describe('input responses without requestState', () => {
  it('are used for one question per key', async () => {
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
  it.each(ALL_FORMS)(
    'runs again with the answers, with the same call.key: %s',
    async (revision) => {
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
    },
  )

  it('sees the error of a rejected requestState', async () => {
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

describe('call.ask in tools/list', () => {
  it('is a ToolError, not input_required', async () => {
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

describe('after a call was cancelled', () => {
  it.each(ALL_FORMS)('no step begins, and none is recorded as failed, in %s', async (revision) => {
    const effects: number[] = []
    const errors: unknown[] = []
    const controller = new AbortController()
    let end = () => {}
    const ended = new Promise<void>((resolve) => (end = resolve))
    const server = serverOf(async (call) => {
      await call.step('before', () => void effects.push(0))
      const cancelled = new Promise((resolve) => call.signal.addEventListener('abort', resolve))
      controller.abort()
      await cancelled
      for (let each = 1; each <= 30; each++)
        await call
          .step(`step ${each}`, () => void effects.push(each))
          .catch((error: unknown) => errors.push(error === call.signal.reason))
      end()
    })
    await using client = await connect(memory(server), { revision })
    const { signal } = controller
    await expect(client.callTool('it', {}, { signal })).rejects.toThrow()
    await ended
    expect(effects).toEqual([0])
    expect(errors).toEqual(Array.from({ length: 30 }, () => true))
  })
})

describe('while a call is being suspended', () => {
  it('every step that has started is stored', async () => {
    // At any number of turns from the moment at which the response is decided.
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

  it('a late question is not sent to a client without the capability', async () => {
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

  it('a question of a rejected ask is not sent', async () => {
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

  it('nothing is logged if the state is too large', async () => {
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
    'can call another server that uses steps and questions: %s',
    async (revision) => {
      const inner = serverOf(async (call) => String(await call.step('same', () => 7)))
      const server = serverOf((call) =>
        call.step('same', async () => text(await callIt(inner, revision, {}))),
      )
      expect(text(await callIt(server, revision, {}))).toBe('7')
    },
  )

  it.each(ALL_FORMS)('gets an aborted signal after the timeout: %s', (revision) =>
    onStillClock(async (pass) => {
      const told: unknown[] = []
      const begun: AbortSignal[] = []
      const server = serverOf(
        async (call) => {
          await call.ask({ who: name() })
          return await call.step('slow', async (signal) => {
            begun.push(signal)
            await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
            told.push(signal.reason)
            return 1
          })
        },
        { timeout: 30_000 },
      )
      const called = callIt(server, revision, { elicit: () => ada })
      await expect.poll(() => begun).toHaveLength(1)
      await pass(30_000)
      expect(text(await called)).toContain('did not finish within 30000 ms')
      await expect.poll(() => told).toHaveLength(1)
    }),
  )
})

const MODEL = {
  messages: [{ role: 'user' as const, content: { type: 'text' as const, text: '?' } }],
  maxTokens: 1,
}

describe('sampling', () => {
  it.each(BY_REQUEST)('can be declined if it is optional: %s', async (revision) => {
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
  ])('rejects the invalid answer %j', async (wrong) => {
    const server = serverOf(async (call) => JSON.stringify(await call.ask({ it: sample(MODEL) })))
    const { send } = open(server, { sampling: {} })
    const second = await send(retry(await send(), { it: wrong }))
    expect(second.result?.resultType).toBe('input_required')
  })
})

describe('a connection that closes', () => {
  it.each(BY_REQUEST)('rejects pending questions: %s', async (revision) => {
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

describe('async validation of an answer that never settles', () => {
  it('ends with cancellation of the call', async () => {
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
    const timers = vi.spyOn(globalThis, 'setTimeout')
    try {
      void send({ inputResponses: { slow: ada } })
      // The other question is asked: from now on, the call waits for the validation only.
      await expect.poll(() => timers.mock.calls.length).toBeGreaterThan(0)
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

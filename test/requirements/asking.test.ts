import { describe, expect, it } from 'vitest'
import { onStillClock } from '../clock.js'
import { connect, memory } from '../../src/client.js'
import {
  type Call,
  DeclinedError,
  type Question,
  type ServerOptions,
  createServer,
  form,
  prompt,
  resource,
  roots,
  sample,
  tool,
  url,
} from '../../src/index.js'
import { proves } from './proves.js'
import { type Answer, type Heard, Wire, handshakes, ids, modern } from './wire.js'

/* https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr and the client features pages */

const EVERYTHING = {
  elicitation: { form: {}, url: {} },
  sampling: { tools: {}, context: {} },
  roots: {},
}
const Color = {
  type: 'object',
  properties: { color: { type: 'string', enum: ['red', 'green'] } },
  required: ['color'],
} as const
const color = (message = 'Which?') => form({ message, schema: Color })
const page = url({ message: 'Open it.', url: 'https://example.com/' })
const said = (text: string) => ({ role: 'user' as const, content: { type: 'text' as const, text } })
const model = sample({ messages: [said('hello')], maxTokens: 10 })
const green = { action: 'accept', content: { color: 'green' } }
const words = { role: 'assistant', model: 'none', content: { type: 'text', text: 'hi' } }

const serverOf = (ask: (call: Call) => unknown, options: Partial<ServerOptions> = {}) =>
  createServer({
    name: 'asking',
    version: '1',
    tools: [tool({ name: 'it', run: (_, call) => ask(call) })],
    ...options,
  })
const asking = (question: Question, options?: Partial<ServerOptions>) =>
  serverOf(async (call) => JSON.stringify((await call.ask({ it: question })).it), options)
const call = (wire: Wire, more: Record<string, unknown> = {}) =>
  wire.request('tools/call', { name: 'it', arguments: {}, ...more })

interface Asked {
  method: string
  params: Record<string, unknown>
}
/** The `inputRequests` of an `input_required` result. */
const inputs = ({ result }: Answer) =>
  result?.['inputRequests'] as Record<string, Asked> | undefined

/** The elicitation, sampling or roots request that a client receives for one question; undefined if the call ended without one. */
async function put(
  revision: string,
  question: Question,
  capabilities: Record<string, unknown> = EVERYTHING,
): Promise<Asked | undefined> {
  const wire = await Wire.open(asking(question), revision, { capabilities })
  const answer = call(wire)
  if (revision === modern) return inputs(await answer)?.['it']
  const [asked] = await wire.settle()
  return asked as Asked | undefined
}

describe(`multi round-trip requests in ${modern}`, () => {
  it('sends input requests in results, never as requests', async () => {
    proves('mrtr.only-way', 'mrtr.kinds', 'mrtr.keys', 'mrtr.something')
    const server = serverOf(async (one) => {
      const { a, b } = await one.ask({ a: color(), b: model })
      const { c } = await one.ask({ c: roots() })
      return `${a.color} ${b.model} ${c.length}`
    })
    const wire = await Wire.open(server, modern, { capabilities: EVERYTHING })
    const first = await call(wire)
    expect(first.result?.['resultType']).toBe('input_required')
    expect(Object.entries(inputs(first) ?? {}).map(([key, { method }]) => [key, method])).toEqual([
      ['a', 'elicitation/create'],
      ['b', 'sampling/createMessage'],
    ])
    const second = await call(wire, {
      requestState: first.result?.['requestState'],
      inputResponses: { a: green, b: words },
    })
    expect(Object.entries(inputs(second) ?? {}).map(([key, { method }]) => [key, method])).toEqual([
      ['c', 'roots/list'],
    ])
    expect(typeof second.result?.['requestState']).toBe('string')
    const third = await call(wire, {
      requestState: second.result?.['requestState'],
      inputResponses: { c: { roots: [] } },
    })
    expect(third.result?.['content']).toEqual([{ type: 'text', text: 'green none 0' }])
    expect(await wire.settle()).toEqual([])
  })

  it('allows input_required for tools/call, prompts/get and resources/read only', async () => {
    proves('mrtr.methods')
    const ask = async (one: Call) => (await one.ask({ it: color() })).it.color
    const server = serverOf(ask, {
      prompts: [prompt({ name: 'p', build: (_, one) => ask(one) })],
      resources: [
        resource({ uri: 'a://b', read: (_, one) => ask(one) }),
        resource({
          uri: 'c://{d}',
          read: () => '',
          async list(one) {
            await ask(one)
            return []
          },
        }),
      ],
    })
    const wire = await Wire.open(server, modern, { capabilities: EVERYTHING })
    for (const answer of [
      await call(wire),
      await wire.request('prompts/get', { name: 'p' }),
      await wire.request('resources/read', { uri: 'a://b' }),
    ])
      expect(answer.result?.['resultType']).toBe('input_required')
    expect((await wire.request('resources/list')).error?.code).toBe(-32603)
    server.use(async (one, next) => {
      if (one.method === 'tools/list') await ask(one)
      return await next()
    })
    expect((await wire.request('tools/list')).error?.code).toBe(-32603)
  })

  it('rejects a request state that was forged, modified or made for another request', async () => {
    proves('mrtr.state', 'mrtr.security', 'mrtr.replay', 'mrtr.once')
    const used = new Set<string>()
    const consume = (id: string) => !used.has(id) && used.add(id).size > 0
    const server = serverOf(async (one) => (await one.ask({ it: color() })).it.color, {
      state: { once: { consume }, ttl: 60_000 },
    })
    server.tools.add(
      tool({ name: 'other', run: async (_, one) => (await one.ask({ it: color() })).it.color }),
    )
    const wire = await Wire.open(server, modern, { capabilities: EVERYTHING })
    const fresh = async () => String((await call(wire)).result?.['requestState'])
    const retry = (state: unknown, more = {}) =>
      call(wire, { requestState: state, inputResponses: { it: green }, ...more })
    const state = await fresh()
    const flipped = state.slice(0, 40) + (state[40] === 'A' ? 'B' : 'A') + state.slice(41)
    for (const wrong of ['', 'x', 5, null, {}, flipped, state.slice(0, -4), btoa('{"answers":{}}')])
      expect([wrong, (await retry(wrong)).error?.code]).toEqual([wrong, -32602])
    // A state of another tool, of another server, and with other arguments.
    expect((await retry(state, { name: 'other' })).error?.code).toBe(-32602)
    const foreign = (
      await call(await Wire.open(asking(color()), modern, { capabilities: EVERYTHING }))
    ).result?.['requestState']
    expect((await retry(foreign)).error?.code).toBe(-32602)
    expect((await retry(state, { arguments: { more: 1 } })).error?.code).toBe(-32602)
    // A state can be used once.
    expect((await retry(await fresh())).result?.['content']).toEqual([
      { type: 'text', text: 'green' },
    ])
    const twice = await fresh()
    expect((await retry(twice)).result).toBeDefined()
    expect((await retry(twice)).error?.code).toBe(-32602)
  })

  it('rejects an expired request state', async () => {
    proves('mrtr.replay')
    const wire = await Wire.open(asking(color(), { state: { ttl: 1 } }), modern, {
      capabilities: EVERYTHING,
    })
    const { result } = await call(wire)
    const made = Date.now()
    await expect.poll(() => Date.now() - made).toBeGreaterThan(5)
    expect(
      (await call(wire, { requestState: result?.['requestState'], inputResponses: { it: green } }))
        .error?.code,
    ).toBe(-32602)
  })

  it('sends only input requests whose capability the client declared, else an error that names it', async () => {
    proves('mrtr.declared', 'meta.undeclared', 'roots.check')
    const cases: [Question, Record<string, unknown>, object][] = [
      [color(), {}, { elicitation: { form: {} } }],
      [color(), { elicitation: { url: {} } }, { elicitation: { form: {} } }],
      [page, { elicitation: {} }, { elicitation: { url: {} } }],
      [model, { elicitation: {} }, { sampling: {} }],
      [roots(), { sampling: {} }, { roots: {} }],
    ]
    for (const [question, capabilities, requiredCapabilities] of cases) {
      const { error, result } = await call(
        await Wire.open(asking(question), modern, { capabilities }),
      )
      expect([result, error?.code, error?.data]).toEqual([
        undefined,
        -32021,
        { requiredCapabilities },
      ])
    }
  })

  it('keeps no call running for a client that does not retry', async () => {
    proves('mrtr.no-answer')
    let running = 0
    const server = serverOf(async (one) => {
      running++
      try {
        return (await one.ask({ it: color() })).it.color
      } finally {
        running--
      }
    })
    const wire = await Wire.open(server, modern, { capabilities: EVERYTHING })
    for (let many = 0; many < 300; many++) void call(wire)
    await wire.settle()
    await expect.poll(() => running).toBe(0)
    expect((await wire.request('tools/list')).result).toBeDefined()
  })

  it('validates input responses, ignores unexpected ones and requests missing ones again', async () => {
    proves('mrtr.validate', 'mrtr.unexpected', 'mrtr.missing')
    const server = serverOf(async (one) => {
      const { a, b } = await one.ask({ a: color('A?'), b: color('B?') })
      return `${a.color} ${b.color}`
    })
    const wire = await Wire.open(server, modern, { capabilities: EVERYTHING })
    const { result } = await call(wire)
    const retry = (inputResponses: unknown, requestState: unknown = result?.['requestState']) =>
      call(wire, { requestState, inputResponses })
    const odd = await Wire.open(server, modern, { capabilities: EVERYTHING, judged: false })
    for (const wrong of ['x', 5, [], null])
      expect((await call(odd, { inputResponses: wrong })).error?.code).toBe(-32602)
    const partly = await retry({ a: green, unknown: green, ['__proto__']: green })
    expect(Object.keys(inputs(partly) ?? {})).toEqual(['b'])
    const wrongly = await call(odd, {
      requestState: partly.result?.['requestState'],
      inputResponses: { b: { action: 'accept', content: { color: 'blue' } } },
    })
    expect(Object.keys(inputs(wrongly) ?? {})).toEqual(['b'])
    expect(
      (await retry({ b: green }, wrongly.result?.['requestState'])).result?.['content'],
    ).toEqual([{ type: 'text', text: 'green green' }])
  })
})

describe.each(ids.slice(2))('form elicitation in %s', (revision) => {
  it('has a message and a requested schema, and the content is validated', async () => {
    proves(
      'elicitation.params',
      'elicitation.form',
      'elicitation.validate',
      'elicitation.form-validate',
    )
    const asked = await put(revision, color('Which one?'))
    expect(asked).toMatchObject({
      method: 'elicitation/create',
      params: { message: 'Which one?', requestedSchema: { type: 'object', required: ['color'] } },
    })
    expect([undefined, 'form']).toContain(asked?.params['mode'])
    await using client = await connect(memory(asking(color())), {
      revision,
      elicit: () => ({ action: 'accept', content: { color: 'blue' } }),
    })
    const outcome = await client.callTool('it').catch((error: unknown) => error)
    expect(JSON.stringify(outcome)).not.toContain('{\\"color')
    await using good = await connect(memory(asking(color())), {
      revision,
      elicit: () => ({ action: 'accept', content: { color: 'red' } }),
    })
    expect((await good.callTool('it')).content).toEqual([{ type: 'text', text: '{"color":"red"}' }])
  })

  it.each(['decline', 'cancel'] as const)(
    'reports the action %s to the handler',
    async (action) => {
      proves('elicitation.refusals')
      let thrown: unknown
      const server = serverOf(async (one) => {
        try {
          return (await one.ask({ it: color() })).it.color
        } catch (error) {
          thrown = error
          throw error
        }
      })
      await using client = await connect(memory(server), { revision, elicit: () => ({ action }) })
      expect((await client.callTool('it')).isError).toBe(true)
      expect(thrown).toBeInstanceOf(DeclinedError)
    },
  )

  it('is not sent to a client that declared URL mode only', async () => {
    proves('elicitation.declared-modes')
    expect(await put(revision, color(), { elicitation: { url: {} } })).toBeUndefined()
    expect(await put(revision, color(), {})).toBeUndefined()
    expect(await put(revision, color(), { elicitation: {} })).toBeDefined()
  })
})

describe.each(ids.slice(3))('URL elicitation in %s', (revision) => {
  it('has a mode, a message and a URL, and an elicitationId if the revision has one', async () => {
    proves('elicitation.url', 'elicitation.params', 'elicitation.declared-modes')
    const { elicitationId, ...params } = (await put(revision, page))?.params ?? {}
    expect(params).toEqual({ mode: 'url', message: 'Open it.', url: 'https://example.com/' })
    expect(typeof elicitationId).toBe(revision === modern ? 'undefined' : 'string')
    expect(await put(revision, page, { elicitation: {} })).toBeUndefined()
    expect(await put(revision, url({ message: 'x', url: 'no url' }))).toBeUndefined()
  })
})

describe.each(ids)('sampling in %s', (revision) => {
  it('sends messages with role and content, to clients that declared sampling', async () => {
    proves('sampling.messages', 'sampling.validate', 'sampling.context')
    const asked = await put(
      revision,
      sample({ messages: [said('hello')], maxTokens: 10, includeContext: 'thisServer' }),
      { sampling: {} },
    )
    expect(asked).toMatchObject({
      method: 'sampling/createMessage',
      params: {
        messages: [{ role: 'user', content: { type: 'text', text: 'hello' } }],
        maxTokens: 10,
      },
    })
    // If the revision has a capability for it, `includeContext` is sent only to clients that declared it.
    expect('includeContext' in (asked?.params ?? {})).toBe(revision < '2025-11-25')
    expect(await put(revision, model, {})).toBeUndefined()
    await using client = await connect(memory(asking(model)), {
      revision,
      sample: () => ({ role: 'nobody', content: 5 }) as never,
    })
    const outcome = await client.callTool('it').catch((error: unknown) => error)
    expect(JSON.stringify(outcome)).not.toContain('nobody')
  })
})

describe.each(ids.slice(3))('sampling with tools in %s', (revision) => {
  const use = {
    role: 'assistant' as const,
    content: [{ type: 'tool_use' as const, id: 'u1', name: 't', input: {} }],
  }
  const done = {
    type: 'tool_result' as const,
    toolUseId: 'u1',
    content: [{ type: 'text' as const, text: 'x' }],
  }
  const tools = [{ name: 't', inputSchema: { type: 'object' as const } }]
  const asked = (...messages: object[]) =>
    put(revision, sample({ messages: messages as never, maxTokens: 10, tools }), {
      sampling: { tools: {} },
    })

  it('is sent only to clients that declared sampling.tools', async () => {
    proves('sampling.tools')
    expect(
      await put(revision, sample({ messages: [said('x')], maxTokens: 1, tools }), { sampling: {} }),
    ).toBeUndefined()
    expect(await asked(said('x'))).toBeDefined()
  })

  it('requires a tool result for every tool use, in a message of its own', async () => {
    proves('sampling.tool-results', 'sampling.tool-balance', 'sampling.tool-replies')
    expect(await asked(said('x'), use, { role: 'user', content: [done] })).toBeDefined()
    expect(await asked(said('x'), use, said('and now?'))).toBeUndefined()
    expect(
      await asked(said('x'), use, {
        role: 'user',
        content: [done, { type: 'text', text: 'more' }],
      }),
    ).toBeUndefined()
    expect(await asked(said('x'), { role: 'user', content: [done] })).toBeUndefined()
    expect(
      await asked(said('x'), use, { role: 'user', content: [{ ...done, toolUseId: 'u2' }] }),
    ).toBeUndefined()
  })
})

describe('timeouts', () => {
  it.each(handshakes)(
    'end a request of the server in %s, which is then cancelled',
    async (revision) => {
      proves('lifecycle.timeouts-first', 'lifecycle.timeouts')
      const wire = await Wire.open(asking(roots(), { state: { ttl: 20 } }), revision, {
        capabilities: EVERYTHING,
      })
      expect((await call(wire)).result).toMatchObject({ isError: true })
      const [asked, cancelled] = (await wire.settle()) as [Heard, Heard]
      expect([asked.method, cancelled.method, cancelled.params?.['requestId']]).toEqual([
        'roots/list',
        'notifications/cancelled',
        asked.id,
      ])
    },
  )

  it.each(ids)(
    'can be set for each request of the client in %s; progress extends them up to the maximum',
    (revision) =>
      onStillClock(async (pass) => {
        proves('lifecycle.timeouts-configurable', 'lifecycle.timeouts-maximum')
        let cancelled = 0
        const server = serverOf(
          (one) =>
            new Promise((resolve) => {
              let done = 0
              const timer = setInterval(() => one.progress(++done), 20)
              one.signal.addEventListener('abort', () => {
                clearInterval(timer)
                cancelled++
                resolve('')
              })
            }),
        )
        await using client = await connect(memory(server), { revision })
        let heard = 0
        const capped = client.callTool(
          'it',
          {},
          { timeout: 1000, maxTimeout: 60, onProgress: () => heard++ },
        )
        await Promise.all([expect(capped).rejects.toThrow('60 ms'), pass(60)])
        expect(heard).toBeGreaterThan(0)
        const short = client.callTool('it', {}, { timeout: 15 })
        await Promise.all([expect(short).rejects.toThrow('15 ms'), pass(15)])
        expect(cancelled).toBe(2)
      }),
  )
})

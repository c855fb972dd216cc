import { describe, expect, it, vi } from 'vitest'
import { onStillClock } from '../clock.js'
import { z } from 'zod'
import { type ConnectOptions, type ElicitParams, connect, memory } from '../../src/client.js'
import {
  type Call,
  DeclinedError,
  type Server,
  type StateOptions,
  Suspended,
  type Tool,
  ToolError,
  createServer,
  form,
  prompt,
  resource,
  roots,
  sample,
  tool,
  url,
} from '../../src/index.js'
import { revisions } from '../../src/protocol/revisions/index.js'
import { connectInMemory } from '../../src/testing.js'

/* call.ask: every rule, in every revision that supports it. */

const ALL = revisions.map(({ id }) => id)
const BY_RESULT = revisions.filter(({ asksBy: asking }) => asking === 'result').map(({ id }) => id)
const FORMS = revisions.filter(({ fields }) => fields.formString.length > 0).map(({ id }) => id)
const URLS = revisions
  .filter(({ urlElicitation: urlQuestions }) => urlQuestions !== 'none')
  .map(({ id }) => id)
const WITH_TOOLS = new Set(
  revisions.filter(({ samplingTools }) => samplingTools).map(({ id }) => id),
)
const BY_REQUEST = FORMS.filter((id) => !BY_RESULT.includes(id))
const without = (list: readonly string[]) =>
  ALL.filter((id) => !list.includes(id) && !BY_RESULT.includes(id))

const Name = {
  type: 'object',
  properties: { name: { type: 'string', minLength: 1 } },
  required: ['name'],
} as const
const Sure = { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] } as const
const name = (message = 'Who?') => form({ message, schema: Name })
const sure = (message: string) => form({ message, schema: Sure })

type Facts = Partial<Tool> & { state?: StateOptions; report?: string[] }

function serverOf(
  run: (call: Call, input: { n?: number }) => unknown,
  { state, ...facts }: Facts = {},
): Server {
  const it = tool({
    name: 'it',
    input: { type: 'object', properties: { n: { type: 'number' } } },
    run: (input, call) => run(call, input),
  })
  return createServer({
    name: 'asking',
    version: '1',
    tools: [{ ...it, ...facts }],
    ...(state === undefined ? {} : { state }),
  })
}

const accept = (content: Record<string, string | number | boolean | string[]>) => ({
  action: 'accept' as const,
  content,
})

async function callIt(
  server: Server,
  revision: string,
  answers: ConnectOptions,
  args: Record<string, unknown> = {},
) {
  await using client = await connect(memory(server), { revision, ...answers })
  return await client.callTool('it', args)
}

const text = (result: { content: readonly unknown[] }) =>
  (result.content[0] as { text: string }).text

interface Answer {
  result?: {
    resultType: string
    requestState?: string
    inputRequests?: Record<string, { params: { message: string } }>
    content?: [{ text: string }]
  }
  error?: { code: number; message: string; data?: unknown }
}

let ids = 0
/** Sends one stateless request and returns its response unchanged. */
function send(
  server: Server,
  params: Record<string, unknown> = {},
  { capabilities = { elicitation: {} }, method = 'tools/call', reports = [] as string[] } = {},
): Promise<Answer> {
  const id = ++ids
  const channel = connectInMemory(server, { report: ({ message }) => void reports.push(message) })
  return new Promise((resolve) => {
    channel.receive({
      frame(frame) {
        const message = JSON.parse(frame) as Answer & { id?: number }
        if (message.id === id) resolve(message)
      },
      malformed: () => {},
      closed: () => {},
    })
    const meta = {
      'io.modelcontextprotocol/protocolVersion': BY_RESULT[0],
      'io.modelcontextprotocol/clientCapabilities': capabilities,
    }
    channel.send(
      JSON.stringify({
        jsonrpc: '2.0',
        id,
        method,
        params: { name: 'it', ...params, _meta: meta },
      }),
    )
  })
}

/** The params of the retry that answers the questions of a first response. */
const retry = ({ result }: Answer, inputResponses: Record<string, unknown>) => ({
  inputResponses,
  requestState: result?.requestState,
})
const turn = () => new Promise((resolve) => setImmediate(resolve))
const gate = () => {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open: () => open(), opened }
}

describe.each(FORMS)('elicitation forms in %s', (revision) => {
  it('returns the submitted form', async () => {
    const seen: ElicitParams[] = []
    const server = serverOf(async (call) => `Hello, ${(await call.ask({ who: name() })).who.name}`)
    const result = await callIt(server, revision, {
      elicit: (params) => (seen.push(params), accept({ name: 'Ada' })),
    })
    expect(result).toMatchObject({ content: [{ text: 'Hello, Ada' }], isError: false })
    expect(seen).toEqual([{ mode: 'form', message: 'Who?', requestedSchema: Name }])
  })

  it('returns the output of a schema library', async () => {
    const schema = z.object({
      day: z.iso.date().transform((day) => new Date(day)),
      mail: z.email().optional(),
      n: z.int().default(7),
    })
    const server = serverOf(async (call) => {
      const { it } = await call.ask({ it: form({ message: 'When?', schema }) })
      return `${it.day.getUTCFullYear()} ${it.n}`
    })
    expect(
      text(await callIt(server, revision, { elicit: () => accept({ day: '2026-07-28' }) })),
    ).toBe('2026 7')
  })

  it('rejects with DeclinedError if declined, and the model gets the message', async () => {
    let thrown: unknown
    const server = serverOf(async (call) => {
      try {
        await call.ask({ who: name() })
      } catch (error) {
        thrown = error
        throw error
      }
      return 'never'
    })
    for (const [action, word] of [
      ['decline', 'declined'],
      ['cancel', 'cancelled'],
    ] as const) {
      const result = await callIt(server, revision, { elicit: () => ({ action }) })
      expect(result).toMatchObject({ isError: true, content: [{ text: `The user ${word} "who"` }] })
      expect(thrown).toBeInstanceOf(DeclinedError)
      expect(thrown).toBeInstanceOf(ToolError)
      expect(thrown).toMatchObject({ name: 'DeclinedError', key: 'who', action })
    }
  })

  it.each(['decline', 'cancel'] as const)(
    'an optional form resolves with undefined: %s',
    async (action) => {
      const server = serverOf(async (call) => {
        const { who } = await call.ask({
          who: form({ message: 'Who?', schema: Name, optional: true }),
        })
        return who === undefined ? 'nobody' : who.name
      })
      expect(text(await callIt(server, revision, { elicit: () => ({ action }) }))).toBe('nobody')
    },
  )

  it('requests an invalid answer again', async () => {
    const answers = [accept({}), accept({ name: '' }), accept({ name: 'Ada' })]
    const server = serverOf(async (call) => (await call.ask({ who: name() })).who.name)
    expect(
      text(await callIt(server, revision, { elicit: () => answers.shift() ?? accept({}) })),
    ).toBe('Ada')
    expect(answers).toEqual([])
  })

  it('sends only schema keywords that forms allow', async () => {
    const server = serverOf(async (call) => {
      const schema = { type: 'object', properties: { a: { type: 'object' } } } as const
      await call.ask({ bad: form({ message: 'Bad?', schema }) })
    })
    const result = await callIt(server, revision, { elicit: () => accept({}) })
    expect(text(result)).toContain('A form cannot have the field "a"')
  })

  it('sends several questions together, also from several ask calls in one turn', async () => {
    const asked: string[] = []
    const server = serverOf(async (call) => {
      const [{ a, b }, { c }] = await Promise.all([
        call.ask({ a: name('A?'), b: name('B?') }),
        call.ask({ c: name('C?') }),
      ])
      return [a.name, b.name, c.name].join()
    })
    const elicit = ({ message }: ElicitParams) => (
      asked.push(message),
      accept({ name: message.slice(0, 1) })
    )
    expect(text(await callIt(server, revision, { elicit }))).toBe('A,B,C')
    expect(asked.toSorted()).toEqual(['A?', 'B?', 'C?'])
  })

  it('a second ask can use the answer of the first', async () => {
    const server = serverOf(async (call) => {
      const { first } = await call.ask({ first: name('First?') })
      const { last } = await call.ask({ last: name(`Last of ${first.name}?`) })
      return `${first.name} ${last.name}`
    })
    const elicit = ({ message }: ElicitParams) =>
      accept({ name: message === 'First?' ? 'Ada' : message })
    expect(text(await callIt(server, revision, { elicit }))).toBe('Ada Last of Ada?')
  })

  it('works in prompts and in resources', async () => {
    const server = createServer({
      name: 'asking',
      version: '1',
      prompts: [
        prompt({
          name: 'greet',
          build: async (_, call) => `Greet ${(await call.ask({ who: name() })).who.name}`,
        }),
      ],
      resources: [
        resource({
          uri: 'name:it',
          read: async (_, call) => (await call.ask({ who: name() })).who.name,
        }),
      ],
    })
    await using client = await connect(memory(server), {
      revision,
      elicit: () => accept({ name: 'Ada' }),
    })
    expect(await client.request('prompts/get', { name: 'greet' })).toMatchObject({
      messages: [{ content: { text: 'Greet Ada' } }],
    })
    expect(await client.request('resources/read', { uri: 'name:it' })).toMatchObject({
      contents: [{ text: 'Ada' }],
    })
  })

  it('is not sent if the client lacks the capability', async () => {
    const server = serverOf(async (call) => (await call.ask({ who: name() })).who.name)
    const called = callIt(server, revision, {})
    if (BY_RESULT.includes(revision))
      await expect(called).rejects.toMatchObject({
        code: -32021,
        data: { requiredCapabilities: { elicitation: { form: {} } } },
      })
    else
      expect(await called).toMatchObject({
        isError: true,
        content: [
          {
            text: 'Question "who" cannot be sent: the client has not declared the capability elicitation that elicitation/create needs',
          },
        ],
      })
  })

  it('sends the defaults and enums that the revision has', async () => {
    const schema = {
      type: 'object',
      properties: {
        name: { type: 'string', default: 'John Doe' },
        age: { type: 'integer', default: 30 },
        score: { type: 'number', default: 95.5 },
        sure: { type: 'boolean', default: true },
        plain: { type: 'string', enum: ['a', 'b'], default: 'a' },
        titled: {
          type: 'string',
          oneOf: [
            { const: 'a', title: 'Aaa' },
            { const: 'b', title: 'Bbb' },
          ],
        },
        legacy: { type: 'string', enum: ['a', 'b'], enumNames: ['Aaa', 'Bbb'] },
      },
    } as const
    const shown: unknown[] = []
    const server = serverOf(async (call) =>
      JSON.stringify((await call.ask({ it: form({ message: '?', schema }) })).it),
    )
    const result = await callIt(server, revision, {
      elicit: (params) => (shown.push(params.requestedSchema), accept({ titled: 'b' })),
    })
    expect(text(result)).toBe('{"titled":"b"}')
    const old = revision === BY_REQUEST[0]
    const titled = { type: 'string', enum: ['a', 'b'], enumNames: ['Aaa', 'Bbb'] }
    expect(shown[0]).toEqual({
      type: 'object',
      properties: old
        ? {
            name: { type: 'string' },
            age: { type: 'integer' },
            score: { type: 'number' },
            sure: { type: 'boolean', default: true },
            plain: { type: 'string', enum: ['a', 'b'] },
            titled,
            legacy: titled,
          }
        : schema.properties,
    })
  })
})

describe('multi-select enums', () => {
  const schema = {
    type: 'object',
    properties: {
      plain: { type: 'array', items: { type: 'string', enum: ['a', 'b'] }, minItems: 1 },
      titled: { type: 'array', items: { anyOf: [{ const: 'a', title: 'Aaa' }] } },
    },
    required: ['plain'],
  } as const
  const server = serverOf(async (call) =>
    (await call.ask({ it: form({ message: '?', schema }) })).it.plain.join('+'),
  )
  it.each(URLS)('are sent in %s', async (revision) => {
    expect(
      text(await callIt(server, revision, { elicit: () => accept({ plain: ['a', 'b'] }) })),
    ).toBe('a+b')
  })
  it('are a ToolError in earlier revisions', async () => {
    const result = await callIt(server, BY_REQUEST[0] ?? '', {
      elicit: () => accept({ plain: ['a'] }),
    })
    expect(text(result)).toBe(
      `Question "it" cannot be sent: revision ${BY_REQUEST[0]} does not support this form`,
    )
  })
})

describe.each(without(FORMS))('elicitation forms in %s', (revision) => {
  it.each([
    ['', name()],
    [' without fields', form({ message: 'Sure?', schema: { type: 'object', properties: {} } })],
  ])('%s are a ToolError in revisions without elicitation', async (_, who) => {
    const server = serverOf(async (call) => {
      await call.ask({ who })
      return 'asked'
    })
    const result = await callIt(server, revision, { elicit: () => accept({ name: 'Ada' }) })
    expect(result).toMatchObject({
      isError: true,
      content: [
        { text: `Question "who" cannot be sent: revision ${revision} does not support this form` },
      ],
    })
  })
})

describe.each(ALL)('sampling, roots and steps in %s', (revision) => {
  it('sample() returns the message of the client', async () => {
    const server = serverOf(async (call) => {
      const { capital } = await call.ask({
        capital: sample({
          messages: [{ role: 'user', content: { type: 'text', text: 'Capital?' } }],
          maxTokens: 5,
        }),
      })
      return `${capital.model}: ${JSON.stringify(capital.content)}`
    })
    const result = await callIt(server, revision, {
      sample: () => ({ role: 'assistant', content: { type: 'text', text: 'Paris' }, model: 'm' }),
    })
    expect(text(result)).toBe('m: {"type":"text","text":"Paris"}')
  })

  it('roots() returns the roots', async () => {
    const server = serverOf(async (call) =>
      (await call.ask({ folders: roots() })).folders.map(({ uri }) => uri).join(),
    )
    expect(
      text(
        await callIt(server, revision, {
          roots: () => [{ uri: 'file:///a', name: 'A' }, { uri: 'file:///b' }],
        }),
      ),
    ).toBe('file:///a,file:///b')
  })

  it('call.client has capabilities and info', async () => {
    const server = serverOf((call) => JSON.stringify(Object.keys(call.client.capabilities)))
    expect(text(await callIt(server, revision, { roots: () => [] }))).toBe('["roots"]')
  })

  it('several content blocks are sent as the revision allows', async () => {
    const seen: unknown[] = []
    const server = serverOf(async (call) => {
      const content = [
        { type: 'text' as const, text: 'one' },
        { type: 'audio' as const, data: 'AAAA', mimeType: 'audio/wav' },
      ]
      await call.ask({ it: sample({ messages: [{ role: 'user', content }], maxTokens: 5 }) })
      return 'ok'
    })
    const answer = { role: 'assistant', content: { type: 'text', text: '' }, model: 'm' } as const
    await callIt(server, revision, { sample: ({ messages }) => (seen.push(...messages), answer) })
    expect(seen).toHaveLength(WITH_TOOLS.has(revision) ? 1 : 2)
  })

  it.each([
    ['is', { context: {} }],
    ['is not', {}],
  ])('includeContext is sent if sampling.context %s declared', async (_, sampling) => {
    const seen: unknown[] = []
    const server = serverOf((call) =>
      call.ask({ it: sample({ messages: [], maxTokens: 5, includeContext: 'thisServer' }) }),
    )
    await callIt(server, revision, {
      capabilities: { sampling },
      sample: ({ includeContext }) => (
        seen.push(includeContext),
        { role: 'assistant', content: { type: 'text', text: '' }, model: 'm' }
      ),
    })
    // In earlier revisions it is part of sampling.
    expect(seen).toEqual([
      'context' in sampling || !WITH_TOOLS.has(revision) ? 'thisServer' : undefined,
    ])
  })

  it('sampling with tools is sent, or is a ToolError if the revision lacks it', async () => {
    const server = serverOf(async (call) => {
      const tools = [{ name: 't', inputSchema: { type: 'object' } }]
      const { it } = await call.ask({
        it: sample({ messages: [], maxTokens: 5, tools, toolChoice: { mode: 'auto' } }),
      })
      return String(it.stopReason)
    })
    const result = await callIt(server, revision, {
      sample: () => ({
        role: 'assistant',
        content: [{ type: 'tool_use', id: '1', name: 't', input: {} }],
        model: 'm',
        stopReason: 'toolUse',
      }),
    })
    const missing = `Question "it" cannot be sent: revision ${revision} has no tools in sampling`
    expect(text(result)).toBe(WITH_TOOLS.has(revision) ? 'toolUse' : missing)
  })

  it('a step runs once and its result is converted to JSON', async () => {
    let done = 0
    const server = serverOf(async (call) => {
      const made = await call.step('make', () => ({ n: ++done, gone: undefined }))
      const { folders } = await call.ask({ folders: roots() })
      return JSON.stringify([made, 'gone' in made, folders.length])
    })
    expect(text(await callIt(server, revision, { roots: () => [] }))).toBe('[{"n":1},false,0]')
    expect(done).toBe(1)
  })

  it.each([
    ['a date', () => new Date(0), 'must be plain JSON'],
    ['a function', () => () => 1, 'must be plain JSON'],
    ['NaN', () => Number.NaN, 'must be plain JSON'],
    [
      'a value over the limit',
      () => 'x'.repeat(70_000),
      'is too large: 70002 of at most 65536 bytes',
    ],
    [
      'a circular object',
      () => {
        const circle: Record<string, unknown> = {}
        circle['it'] = circle
        return circle
      },
      'must be plain JSON',
    ],
  ])('a step cannot return %s', async (_, make, problem) => {
    const server = serverOf((call) => call.step('it', make as () => string))
    expect(text(await callIt(server, revision, {}))).toBe(
      `Tool it failed: The result of step "it" ${problem}`,
    )
  })

  it.each([
    [
      'two steps with one key',
      async (call: Call) => (await call.step('a', () => 1), await call.step('a', () => 2)),
      'There are two steps "a"',
    ],
    [
      'a step in a step',
      (call: Call) => call.step('a', () => call.step('b', () => 1)),
      'call.step() cannot be called inside a step',
    ],
    [
      'a step in a step that has waited',
      (call: Call) =>
        call.step('a', async () => (await Promise.resolve(), await call.step('b', () => 1))),
      'call.step() cannot be called inside a step',
    ],
    [
      'a question in a step',
      (call: Call) => call.step('a', async () => (await call.ask({ r: roots() })).r.length),
      'call.ask() cannot be called inside a step',
    ],
  ])('%s is a TypeError', async (_, run, problem) => {
    expect(text(await callIt(serverOf(run), revision, { roots: () => [] }))).toContain(problem)
  })

  it('a ToolError of a step is stored, other errors are not', async () => {
    let refusals = 0
    let accidents = 0
    const server = serverOf(async (call) => {
      const refused = await call
        .step('refuse', () => {
          refusals++
          throw new ToolError('No seat left')
        })
        .catch((error: unknown) => String(error))
      await call
        .step('break', () => {
          accidents++
          throw new Error('broken')
        })
        .catch(() => {})
      await call.ask({ folders: roots() })
      return refused
    })
    expect(text(await callIt(server, revision, { roots: () => [] }))).toBe(
      'ToolError: No seat left',
    )
    expect([refusals, accidents]).toEqual([1, BY_RESULT.includes(revision) ? 2 : 1])
  })

  it('call.key is the same in all runs of a call, and differs between calls', async () => {
    const keys: string[] = []
    const attempts: number[] = []
    const server = serverOf(async (call) => {
      keys.push(call.key)
      attempts.push(call.attempt)
      await call.ask({ folders: roots() })
    })
    await callIt(server, revision, { roots: () => [] })
    await callIt(server, revision, { roots: () => [] })
    const twice = BY_RESULT.includes(revision)
    expect(attempts).toEqual(twice ? [1, 2, 1, 2] : [1, 1])
    expect(new Set(keys).size).toBe(2)
    if (twice) expect([keys[0], keys[2]]).toEqual([keys[1], keys[3]])
  })

  it('a step in parallel with ask runs once', async () => {
    let done = 0
    const server = serverOf(async (call) => {
      const slow = async () => {
        await new Promise((resolve) => setImmediate(resolve))
        return ++done
      }
      const [made] = await Promise.all([call.step('slow', slow), call.ask({ folders: roots() })])
      return String(made)
    })
    expect(text(await callIt(server, revision, { roots: () => [] }))).toBe('1')
    expect(done).toBe(1)
  })
})

describe.each(URLS)('URL elicitation in %s', (revision) => {
  it('resolves with true if accepted', async () => {
    const seen: ElicitParams[] = []
    const server = serverOf(async (call) =>
      String(
        (await call.ask({ login: url({ message: 'Log in', url: 'https://example.com/' }) })).login,
      ),
    )
    expect(
      text(
        await callIt(server, revision, {
          elicit: (params) => (seen.push(params), { action: 'accept' }),
        }),
      ),
    ).toBe('true')
    expect(seen[0]).toMatchObject({ mode: 'url', message: 'Log in', url: 'https://example.com/' })
    expect('elicitationId' in (seen[0] ?? {})).toBe(!BY_RESULT.includes(revision))
  })
  it('rejects an invalid URL', async () => {
    const server = serverOf((call) =>
      call.ask({ login: url({ message: 'Log in', url: 'nowhere' }) }),
    )
    expect(
      text(await callIt(server, revision, { elicit: () => ({ action: 'accept' }) })),
    ).toContain('must be a URL, not "nowhere"')
  })
  it('is not sent to a client with form mode only', async () => {
    const server = serverOf((call) =>
      call.ask({ login: url({ message: 'Log in', url: 'https://example.com/' }) }),
    )
    const called = callIt(server, revision, {
      elicit: () => ({ action: 'accept' }),
      capabilities: { elicitation: {} },
    })
    if (BY_RESULT.includes(revision))
      await expect(called).rejects.toMatchObject({
        code: -32021,
        data: { requiredCapabilities: { elicitation: { url: {} } } },
      })
    else expect((await called).isError).toBe(true)
  })
})

describe.each(BY_REQUEST)('call.ask while it waits, in %s', (revision) => {
  it('pauses the timeout of the tool', () =>
    onStillClock(async (pass) => {
      const server = serverOf(async (call) => (await call.ask({ who: name() })).who.name, {
        timeout: 500,
      })
      const elicit = async () => (await pass(800), accept({ name: 'Ada' }))
      expect(text(await callIt(server, revision, { elicit }))).toBe('Ada')
    }))

  it('does not count against the timeout of the client', () =>
    onStillClock(async (pass) => {
      const server = serverOf(async (call) => (await call.ask({ who: name() })).who.name)
      const elicit = async () => (await pass(900), accept({ name: 'Ada' }))
      await using client = await connect(memory(server), { revision, elicit })
      expect(text(await client.callTool('it', {}, { timeout: 600 }))).toBe('Ada')
    }))

  it('releases the concurrency slot and takes it again', async () => {
    const { open, opened } = gate()
    let inside = 0
    let most = 0
    const server = serverOf(
      async (call, { n = 0 }) => {
        most = Math.max(most, ++inside)
        inside--
        if (n === 0) await call.ask({ who: name() })
        most = Math.max(most, ++inside)
        await new Promise((resolve) => setImmediate(resolve))
        inside--
        return String(n)
      },
      { concurrency: 1 },
    )
    await using client = await connect(memory(server), {
      revision,
      elicit: async () => (await opened, accept({ name: 'Ada' })),
    })
    const first = client.callTool('it', { n: 0 })
    expect(text(await client.callTool('it', { n: 1 }))).toBe('1')
    const third = client.callTool('it', { n: 2 })
    open()
    expect([text(await first), text(await third)]).toEqual(['0', '2'])
    expect(most).toBe(1)
  })

  it('cancels its request if the call is cancelled', async () => {
    const { open, opened } = gate()
    const asked = gate()
    let signal: AbortSignal | undefined
    const server = serverOf((call) => call.ask({ who: name() }))
    await using client = await connect(memory(server), {
      revision,
      elicit: async (_, given) => {
        ;({ signal } = given)
        asked.open()
        await opened
        return accept({ name: 'late' })
      },
    })
    const controller = new AbortController()
    const called = client.callTool('it', {}, { signal: controller.signal })
    await asked.opened
    controller.abort(new Error('enough'))
    await expect(called).rejects.toThrow('enough')
    await new Promise((resolve) => setImmediate(resolve))
    await client.request('ping')
    expect(signal?.aborted).toBe(true)
    open()
  })

  it('times out after state.ttl', async () => {
    const server = serverOf((call) => call.ask({ who: name() }), { state: { ttl: 30 } })
    const result = await callIt(server, revision, { elicit: () => new Promise(() => {}) })
    expect(result.isError).toBe(true)
    expect(text(result)).toBe(
      'The client could not answer "who": No response within 30 ms to elicitation/create',
    )
  })

  it('reports an error of the client as a ToolError', async () => {
    const server = serverOf((call) => call.ask({ who: name() }))
    const result = await callIt(server, revision, {
      elicit: () => {
        throw new Error('out of order')
      },
    })
    expect(text(result)).toBe('The client could not answer "who": Internal error')
  })

  it('fails after three invalid answers', async () => {
    let asked = 0
    const server = serverOf((call) => call.ask({ who: name() }))
    const result = await callIt(server, revision, { elicit: () => (asked++, accept({ name: '' })) })
    expect(text(result)).toContain('The client\'s answer to "who" is invalid: name')
    expect(asked).toBe(3)
  })
})

describe('requestState', () => {
  const server = (state: StateOptions = {}) =>
    serverOf(
      async (call, { n = 1 }) => {
        const id = await call.step('reserve', () => `job ${n}`)
        const { ok } = await call.ask({ ok: sure(`Delete ${id}?`) })
        return ok.ok ? `deleted ${id}` : 'kept'
      },
      { state },
    )
  const yes = { ok: accept({ ok: true }) }
  const refused = (reason: string) => ({
    error: {
      code: -32602,
      message: expect.stringContaining(`this requestState cannot be used: ${reason}`) as string,
    },
  })

  it('restores the call', async () => {
    const it = server()
    const first = await send(it, { arguments: { n: 2 } })
    expect(first.result).toMatchObject({
      resultType: 'input_required',
      inputRequests: { ok: { method: 'elicitation/create' } },
    })
    const second = await send(it, { arguments: { n: 2 }, ...retry(first, yes) })
    expect(second.result).toMatchObject({
      resultType: 'complete',
      content: [{ text: 'deleted job 2' }],
    })
  })

  it('is encrypted', async () => {
    const { result } = await send(server())
    const bytes = Buffer.from(result?.requestState ?? '', 'base64url').toString('latin1')
    expect(bytes).not.toContain('job')
    expect(bytes.length).toBeGreaterThan(100)
  })

  it('is rejected if it was modified', async () => {
    const it = server()
    const first = await send(it)
    const state = first.result?.requestState ?? ''
    for (const changed of [
      `${state}-TAMPERED`,
      state.slice(1),
      '',
      'x',
      state.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')),
      `A${state.slice(1)}B`,
    ])
      expect(await send(it, { inputResponses: yes, requestState: changed })).toMatchObject(
        refused('it was not created by this server'),
      )
    expect(await send(it, { inputResponses: yes, requestState: 5 })).toMatchObject(
      refused('it must be a string'),
    )
  })

  it('is rejected if it has expired', async () => {
    const it = server({ ttl: 1 })
    const first = await send(it)
    await new Promise((resolve) => setTimeout(resolve, 5))
    expect(await send(it, retry(first, yes))).toMatchObject(refused('it has expired'))
  })

  it('is rejected for other arguments, names or methods', async () => {
    const it = createServer({
      name: 'asking',
      version: '1',
      tools: ['it', 'other'].map((each) =>
        tool({
          name: each,
          input: { type: 'object', properties: { n: { type: 'number' }, m: { type: 'number' } } },
          run: (_, call) => call.ask({ ok: sure('Sure?') }),
        }),
      ),
      prompts: [
        prompt({
          name: 'it',
          build: async (_, call) => (await call.ask({ ok: sure('Sure?') }), 'x'),
        }),
      ],
    })
    const first = await send(it, { arguments: { n: 1, m: 2 } })
    const foreign = refused('it belongs to another request')
    expect(await send(it, { arguments: { n: 2, m: 2 }, ...retry(first, yes) })).toMatchObject(
      foreign,
    )
    expect(
      await send(it, { name: 'other', arguments: { n: 1, m: 2 }, ...retry(first, yes) }),
    ).toMatchObject(foreign)
    expect(
      await send(it, { name: 'it', ...retry(first, yes) }, { method: 'prompts/get' }),
    ).toMatchObject(foreign)
    expect(
      (await send(it, { arguments: { m: 2, n: 1 }, ...retry(first, yes) })).result?.resultType,
    ).toBe('complete')
  })

  it('is rejected for another version of the definition', async () => {
    const it = server()
    const first = await send(it)
    it.tools.update('it', { description: 'Another one' })
    expect(await send(it, retry(first, yes))).toMatchObject(
      refused('it belongs to another request, caller or version'),
    )
  })

  it('is rejected by another process without the same keys; keys can be rotated', async () => {
    const [old, young] = [
      'an old secret of more than 32 characters',
      'a young secret of more than 32 letters',
    ]
    const first = await send(server({ keys: [old] }))
    expect(await send(server(), retry(first, yes))).toMatchObject(
      refused('it was not created by this server'),
    )
    expect(await send(server({ keys: [young] }), retry(first, yes))).toMatchObject(
      refused('it was not created by this server'),
    )
    expect((await send(server({ keys: [old] }), retry(first, yes))).result?.content?.[0].text).toBe(
      'deleted job 1',
    )
    expect(
      (await send(server({ keys: [young, old] }), retry(first, yes))).result?.content?.[0].text,
    ).toBe('deleted job 1')
  })

  it('can be used twice, with state.once only once', async () => {
    const lax = server()
    const first = await send(lax)
    for (let time = 0; time < 2; time++)
      expect((await send(lax, retry(first, yes))).result?.resultType).toBe('complete')
    const used = new Set<string>()
    const strict = server({
      once: {
        consume: (id, expires) => expires > Date.now() && !used.has(id) && used.add(id).size > 0,
      },
    })
    const begun = await send(strict)
    expect((await send(strict, retry(begun, yes))).result?.resultType).toBe('complete')
    expect(await send(strict, retry(begun, yes))).toMatchObject(refused('it has been used already'))
  })

  it('fails the call if it is too large', async () => {
    const it = serverOf(
      async (call) => {
        await call.step('a', () => 'x'.repeat(900))
        await call.step('b', () => 'x'.repeat(900))
        await call.ask({ ok: sure('Sure?') })
      },
      { state: { maxBytes: 1000 } },
    )
    expect((await send(it)).result?.content?.[0].text).toMatch(
      /The state of this call is too large: \d+ of at most 1000 bytes/,
    )
  })

  it('rejects short keys and invalid limits', () => {
    expect(() => server({ keys: ['short'] })).toThrow(
      'each of "state.keys" must be a secret of 32 characters or more',
    )
    expect(() => server({ ttl: 0 })).toThrow('"state.ttl"')
    expect(() => server({ maxBytes: 0 })).toThrow('"state.maxBytes"')
  })
})

describe('input responses', () => {
  it('are ignored if the question has changed', async () => {
    let file = 'A'
    const server = serverOf(async (call) => {
      const { ok } = await call.ask({ ok: sure(`Delete ${file}?`) })
      return ok.ok ? `deleted ${file}` : 'kept'
    })
    const yes = { ok: accept({ ok: true }) }
    const first = await send(server)
    file = 'B'
    const second = await send(server, retry(first, yes))
    expect(second.result?.inputRequests?.['ok']?.params.message).toBe('Delete B?')
    const third = await send(server, retry(second, yes))
    expect(third.result?.content?.[0].text).toBe('deleted B')
  })

  it('without requestState belong to the first round', async () => {
    const server = serverOf(async (call) => (await call.ask({ who: name() })).who.name)
    const good = await send(server, {
      inputResponses: { who: accept({ name: 'Ada' }), more: accept({}) },
    })
    expect(good.result?.content?.[0].text).toBe('Ada')
    for (const inputResponses of [
      { who: 12345 },
      { who: accept({}) },
      { who: { action: 'perhaps' } },
      { wrong: accept({ name: 'Ada' }) },
      {},
    ])
      expect((await send(server, { inputResponses })).result?.resultType).toBe('input_required')
    expect((await send(server, { inputResponses: null })).error?.code).toBe(-32602)
  })

  it('that are missing are requested again, the others are kept', async () => {
    const server = serverOf(async (call) => {
      const { a, b } = await call.ask({ a: name('A?'), b: name('B?') })
      return a.name + b.name
    })
    const first = await send(server)
    const second = await send(server, retry(first, { a: accept({ name: 'a' }) }))
    expect(Object.keys(second.result?.inputRequests ?? {})).toEqual(['b'])
    expect(second.result?.requestState).not.toBe(first.result?.requestState)
    const third = await send(server, retry(second, { b: accept({ name: 'b' }) }))
    expect(third.result?.content?.[0].text).toBe('ab')
  })

  it('with the same key for two consecutive questions are distinguished', async () => {
    const server = serverOf(async (call) => {
      const one = await call.ask({ who: name('One?') })
      const two = await call.ask({ who: name('Two?') })
      return one.who.name + two.who.name
    })
    const first = await send(server)
    const second = await send(server, retry(first, { who: accept({ name: '1' }) }))
    const third = await send(server, retry(second, { who: accept({ name: '2' }) }))
    expect(third.result?.content?.[0].text).toBe('12')
  })

  it('two different questions with the same key in one round are a TypeError', async () => {
    const server = serverOf((call) =>
      Promise.all([call.ask({ who: name('One?') }), call.ask({ who: name('Two?') })]),
    )
    expect((await send(server)).result?.content?.[0].text).toContain(
      'Two different questions are called "who"',
    )
  })

  it('with action decline are kept in later rounds', async () => {
    const server = serverOf(async (call) => {
      const { extra } = await call.ask({
        extra: form({ message: 'Extra?', schema: Name, optional: true }),
      })
      const { who } = await call.ask({ who: name() })
      return `${extra === undefined ? 'none' : extra.name} ${who.name}`
    })
    const first = await send(server)
    const second = await send(server, retry(first, { extra: { action: 'decline' } }))
    expect(Object.keys(second.result?.inputRequests ?? {})).toEqual(['who'])
    const third = await send(server, retry(second, { who: accept({ name: 'Ada' }) }))
    expect(third.result?.content?.[0].text).toBe('none Ada')
  })
})

describe('a suspended call', () => {
  it('runs its finally blocks after the response', async () => {
    const events: string[] = []
    const server = serverOf(async (call) => {
      try {
        await call.ask({ ok: sure('Sure?') })
      } catch (error) {
        events.push(error instanceof Suspended ? 'suspended' : 'other')
        throw error
      } finally {
        events.push('finally')
      }
    })
    const { result } = await send(server)
    expect(result?.resultType).toBe('input_required')
    await new Promise((resolve) => setImmediate(resolve))
    expect(events).toEqual(['suspended', 'finally'])
  })

  it('cannot run steps or ask again; a returned value is logged and discarded', async () => {
    const later: unknown[] = []
    const reports: string[] = []
    const done = gate()
    const server = serverOf(async (call) => {
      await call.ask({ ok: sure('Sure?') }).catch(() => {})
      await call.step('late', () => 1).catch((error: unknown) => later.push(error))
      await call.ask({ more: sure('More?') }).catch((error: unknown) => later.push(error))
      done.open()
      return 'swallowed'
    })
    const { result } = await send(server, {}, { reports })
    expect(result?.resultType).toBe('input_required')
    await done.opened
    await new Promise((resolve) => setImmediate(resolve))
    expect(later).toEqual([expect.any(Suspended), expect.any(Suspended)])
    expect(reports).toEqual([
      'tools/call returned a result after call.ask suspended it; the result is discarded. Do not catch Suspended',
    ])
  })

  it('logs nothing if the handler rethrows Suspended', async () => {
    const reports: string[] = []
    await send(
      serverOf((call) => call.ask({ ok: sure('Sure?') })),
      {},
      { reports },
    )
    await new Promise((resolve) => setImmediate(resolve))
    expect(reports).toEqual([])
  })

  it('releases its concurrency slot', async () => {
    const server = serverOf((call) => call.ask({ ok: sure('Sure?') }), {
      concurrency: 1,
      timeout: 60_000,
    })
    for (let time = 0; time < 3; time++)
      expect((await send(server)).result?.resultType).toBe('input_required')
  })

  it('waits for parallel steps before the response', async () => {
    const finish = gate()
    let runs = 0
    const server = serverOf(async (call) => {
      const charge = async () => {
        runs++
        await finish.opened
        return 'charged'
      }
      const [done] = await Promise.all([
        call.step('charge', charge),
        call.ask({ ok: sure('Sure?') }),
      ])
      return done
    })
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
    try {
      const first = send(server)
      const came: unknown[] = []
      void first.then((answer) => came.push(answer))
      while (vi.getTimerCount() === 0) await turn()
      await vi.advanceTimersByTimeAsync(3_600_000)
      for (let turns = 0; turns < 100; turns++) await turn()
      expect(came).toEqual([])
      finish.open()
      while (vi.getTimerCount() === 0 && came.length === 0) await turn()
      await vi.advanceTimersByTimeAsync(1)
      const last = await send(server, retry(await first, { ok: accept({ ok: true }) }))
      expect(last.result?.content?.[0].text).toBe('charged')
      expect(runs).toBe(1)
    } finally {
      vi.useRealTimers()
    }
  })

  it('does not wait for steps after cancellation or timeout', async () => {
    const ended: unknown[] = []
    const server = serverOf(
      async (call) => {
        void call.step('never', () => new Promise<never>(() => {}))
        await call.ask({ ok: sure('Sure?') }).catch((error: unknown) => {
          ended.push(error)
          throw error
        })
      },
      { timeout: 20, concurrency: 1 },
    )
    for (let time = 0; time < 3; time++) {
      const { result } = await send(server)
      expect(result).toMatchObject({
        isError: true,
        content: [{ text: 'it did not finish within 20 ms and was stopped' }],
      })
      // Its handler has ended: the next call need not wait for it.
      await expect.poll(() => ended.length).toBe(time + 1)
    }
    await expect
      .poll(() => ended.map(String))
      .toEqual(
        Array.from({ length: 3 }, () => 'Error: it did not finish within 20 ms and was stopped'),
      )
  })

  it('waits for async validation without busy waiting', async () => {
    const check = gate()
    const schema = {
      '~standard': {
        version: 1 as const,
        vendor: 'test',
        validate: async (value: unknown) => (await check.opened, { value: value as object }),
        jsonSchema: { input: () => Sure, output: () => Sure },
      },
    }
    const server = serverOf(async (call) => {
      await Promise.all([
        call.ask({ checked: form({ message: 'Checked?', schema }) }),
        call.ask({ other: sure('Sure?') }),
      ])
    })
    const first = await send(server)
    const timers = vi.spyOn(globalThis, 'setTimeout')
    try {
      const last = send(server, retry(first, { checked: accept({ ok: true }) }))
      for (let turns = 0; turns < 50; turns++) await turn()
      expect(timers.mock.calls.length).toBeLessThan(3)
      check.open()
      expect((await last).result?.inputRequests).toMatchObject({ other: {} })
    } finally {
      timers.mockRestore()
    }
  })

  it('aborts the signal of running steps', async () => {
    let aborted = false
    const begun = gate()
    const server = serverOf(async (call) => {
      const step = call.step('slow', async (signal) => {
        begun.open()
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        aborted = true
        return 1
      })
      await begun.opened
      await Promise.all([step, call.ask({ ok: sure('Sure?') })])
    })
    const answered = send(server, {}, { capabilities: {} as { elicitation: object } })
    expect((await answered).error).toMatchObject({
      code: -32021,
      data: { requiredCapabilities: { elicitation: { form: {} } } },
    })
    await new Promise((resolve) => setImmediate(resolve))
    expect(aborted).toBe(true)
  })
})

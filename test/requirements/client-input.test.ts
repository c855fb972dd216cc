import { describe, expect, it } from 'vitest'
import type { ConnectOptions, ElicitParams } from '../../src/client.js'
import { RpcError } from '../../src/client.js'
import { scripted } from '../http-client/scripted.js'
import { proves } from './proves.js'
import { ScriptedServer, collect, metaOf, settle, textResult } from './scripted-server.js'
import { handshakes, ids, modern } from './wire.js'

/* How a client answers what servers ask: elicitation, sampling and roots. */

const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'
const withForms = ids.filter((id) => id >= '2025-06-18')
const withUrls = ids.filter((id) => id >= '2025-11-25')

const requestedSchema = {
  type: 'object',
  properties: {
    name: { type: 'string', default: 'Ada' },
    age: { type: 'integer', default: 36 },
    sure: { type: 'boolean', default: true },
  },
}

const answers: ConnectOptions = {
  elicit: () => ({ action: 'decline' }),
  sample: () => ({ role: 'assistant', content: { type: 'text', text: 'hello' }, model: 'm' }),
  roots: () => [{ uri: 'file:///home/ada', name: 'home' }],
}

/** Asks the client: by a request of the server, or in a stateless revision by a result that needs input. */
async function ask(
  revision: string,
  method: string,
  params: Record<string, unknown>,
  options: ConnectOptions,
): Promise<Record<string, unknown>> {
  if (revision !== modern) {
    const server = new ScriptedServer(revision, { hostile: true })
    await server.connect(options)
    const { result, error } = await server.ask(method, params)
    return result ?? { error }
  }
  const server = new ScriptedServer(revision, {
    hostile: true,
    respond: ({ params: sent }) =>
      sent?.['inputResponses'] === undefined
        ? { resultType: 'input_required', inputRequests: { it: { method, params } } }
        : textResult('done'),
  })
  const client = await server.connect(options)
  try {
    await client.callTool('x')
  } catch (error) {
    return { error }
  }
  const { inputResponses } = server.paramsOf('tools/call').at(-1) ?? {}
  return (inputResponses as Record<string, Record<string, unknown>>)['it'] ?? {}
}

/** The capabilities that a client declares. */
async function declared(
  revision: string,
  options: ConnectOptions,
): Promise<Record<string, unknown>> {
  const server = new ScriptedServer(revision, { respond: () => ({ tools: [] }) })
  await collect((await server.connect(options)).tools())
  const found =
    revision === modern
      ? metaOf(server.received.at(-1) ?? {})[CAPABILITIES]
      : server.paramsOf('initialize')[0]?.['capabilities']
  return found as Record<string, unknown>
}

describe.each(ids)('the capabilities of a client in %s', (revision) => {
  it('are declared for what it can answer, and only for that', async () => {
    proves('sampling.capability', 'roots.capability', 'elicitation.capability')
    const forms = withForms.includes(revision) ? ['elicitation'] : []
    expect(Object.keys(await declared(revision, answers)).toSorted()).toEqual(
      [...forms, 'roots', 'sampling'].toSorted(),
    )
    expect(await declared(revision, {})).toEqual({})
  })
})

describe.each(withUrls)('the modes of a client in %s', (revision) => {
  it('are forms and URLs; it also supports tools in sampling', async () => {
    proves('elicitation.modes', 'sampling.tools-clients')
    expect(await declared(revision, answers)).toMatchObject({
      elicitation: { form: {}, url: {} },
      sampling: { tools: {} },
    })
  })

  it('that are not declared are refused with −32602', async () => {
    proves('elicitation.errors-clients')
    const asked: string[] = []
    const options: ConnectOptions = {
      elicit: ({ mode }) => {
        asked.push(mode)
        return { action: 'decline' }
      },
    }
    const url = { mode: 'url', message: '?', url: 'https://example.com/', elicitationId: '1' }
    const form = { mode: 'form', message: '?', requestedSchema }
    const only = (elicitation: object) => ({ ...options, capabilities: { elicitation } })
    expect(await ask(revision, 'elicitation/create', url, only({ form: {} }))).toMatchObject({
      error: { code: -32_602, message: expect.stringContaining('url') },
    })
    expect(await ask(revision, 'elicitation/create', url, only({}))).toMatchObject({
      error: { code: -32_602 },
    })
    expect(asked).toEqual([])
    await ask(revision, 'elicitation/create', form, only({}))
    await ask(revision, 'elicitation/create', url, only({ url: {} }))
    expect(asked).toEqual(['form', 'url'])
  })
})

describe.each(withForms)('an elicitation in %s', (revision) => {
  it('without a mode is a form, whose defaults the handler gets', async () => {
    proves('elicitation.mode-default', 'elicitation.defaults')
    const seen: ElicitParams[] = []
    // As a form that the user submits without changes.
    const elicit: ConnectOptions['elicit'] = (params) => {
      seen.push(params)
      const fields = Object.entries(params.requestedSchema?.['properties'] as object)
      const content = fields.map(([name, field]) => [name, (field as { default: string }).default])
      return { action: 'accept', content: Object.fromEntries(content) as Record<string, string> }
    }
    const answer = await ask(
      revision,
      'elicitation/create',
      { message: 'Who?', requestedSchema },
      { elicit },
    )
    expect(seen).toEqual([{ mode: 'form', message: 'Who?', requestedSchema }])
    expect(answer).toEqual({ action: 'accept', content: { name: 'Ada', age: 36, sure: true } })
  })
})

describe.each(withUrls)('a URL elicitation in %s', (revision) => {
  it('gives the handler the whole URL, and does not fetch it', async () => {
    proves('elicitation.url-not-fetched')
    const { url, received } = await scripted((_received, response) => void response.end())
    const whole = `${url}/login?state=%20a#fragment`
    const seen: unknown[] = []
    const answer = await ask(
      revision,
      'elicitation/create',
      { mode: 'url', message: 'Log in', url: whole, elicitationId: '1' },
      {
        elicit: (params) => {
          seen.push(params.url)
          return { action: 'accept' }
        },
      },
    )
    expect(answer).toEqual({ action: 'accept' })
    expect(seen).toEqual([whole])
    expect(received).toEqual([])
  })
})

it('ignores the completion of a URL elicitation with an unknown id', async () => {
  proves('elicitation.complete-clients')
  const server = new ScriptedServer('2025-11-25', { respond: () => textResult('still here') })
  const client = await server.connect(answers)
  const completed: unknown[] = []
  client.on('notifications/elicitation/complete', ({ elicitationId }) =>
    completed.push(elicitationId),
  )
  server.notify('notifications/elicitation/complete', { elicitationId: 'unknown' })
  expect(await client.callTool('x')).toMatchObject(textResult('still here'))
  // The application may wait for it, and need not.
  expect(completed).toEqual(['unknown'])
})

describe.each(handshakes)('a failure to answer in %s', (revision) => {
  const failing = (error: Error): ConnectOptions => {
    const fail = () => {
      throw error
    }
    return { sample: fail, roots: fail }
  }
  const messages = { messages: [], maxTokens: 1 }

  it('is an error response: the error of the handler, or −32603', async () => {
    proves('sampling.errors', 'roots.errors')
    const rejected = new RpcError(-1, 'User rejected sampling request')
    for (const method of ['sampling/createMessage', 'roots/list']) {
      expect(await ask(revision, method, messages, failing(rejected))).toMatchObject({
        error: { code: -1, message: 'User rejected sampling request' },
      })
      expect(await ask(revision, method, messages, failing(new Error('secret')))).toMatchObject({
        error: { code: -32_603 },
      })
      expect(await ask(revision, method, messages, {})).toMatchObject({ error: { code: -32_601 } })
    }
  })

  it('leaves the next request of the server unaffected', async () => {
    proves('roots.errors')
    const server = new ScriptedServer(revision)
    let fails = true
    await server.connect({
      roots: () => {
        if (fails) throw new Error('no')
        return []
      },
    })
    expect((await server.ask('roots/list')).error?.code).toBe(-32_603)
    fails = false
    expect((await server.ask('roots/list')).result).toEqual({ roots: [] })
  })

  it('concerns no list changes: they are announced when the application says so', async () => {
    proves('roots.changes')
    const server = new ScriptedServer(revision)
    const client = await server.connect({
      ...answers,
      capabilities: { roots: { listChanged: true } },
    })
    expect(server.paramsOf('initialize')[0]?.['capabilities']).toMatchObject({
      roots: { listChanged: true },
    })
    client.notify('notifications/roots/list_changed')
    await settle()
    expect(server.methods).toEqual(['notifications/roots/list_changed'])
    // Not declared by default, since the client does not know of changes.
    expect((await declared(revision, answers))['roots']).toEqual({})
  })
})

describe.each(ids)('roots in %s', (revision) => {
  it('have file URIs; others are not sent', async () => {
    proves('roots.uri')
    expect(await ask(revision, 'roots/list', {}, answers)).toEqual({
      roots: [{ uri: 'file:///home/ada', name: 'home' }],
    })
    const wrong = await ask(revision, 'roots/list', {}, { roots: () => [{ uri: 'https://a/' }] })
    expect(wrong).toHaveProperty('error')
  })
})

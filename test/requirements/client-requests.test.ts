import { describe, expect, it } from 'vitest'
import { RpcError, TimeoutError } from '../../src/client.js'
import { onStillClock } from '../clock.js'
import { proves } from './proves.js'
import {
  ScriptedServer,
  type Sent,
  collect,
  metaOf,
  settle,
  textResult,
} from './scripted-server.js'
import { ids, modern } from './wire.js'

/* What a client sends, and how it treats the responses. */

const cancelled = 'notifications/cancelled'

describe.each(ids)('the requests of a client in %s', (revision) => {
  it('have ids that are used only once', async () => {
    proves('base.request-id-once')
    const server = new ScriptedServer(revision, {
      respond: ({ method }) =>
        method === 'tools/call' ? textResult('') : { error: { code: -32_603, message: 'no' } },
    })
    const client = await server.connect()
    for (let count = 0; count < 20; count++) {
      await client.callTool('x')
      await client.request('prompts/list').catch(() => {})
    }
    await Promise.all(Array.from({ length: 20 }, () => client.callTool('x')))
    const used = server.received.flatMap(({ id }) => (id === undefined ? [] : [id]))
    expect(used.length).toBeGreaterThan(60)
    expect(new Set(used).size).toBe(used.length)
  })

  it('have progress tokens that are unique among those in progress', async () => {
    proves('progress.token-unique')
    const calls: Sent[] = []
    const server = new ScriptedServer(revision, { respond: (call) => void calls.push(call) })
    const client = await server.connect()
    const progress: number[][] = [[], [], []]
    const results = progress.map((list) =>
      client.callTool('x', {}, { onProgress: (each) => list.push(each.progress) }),
    )
    await settle()
    const tokens = calls.map((call) => metaOf(call)['progressToken'])
    expect(new Set(tokens).size).toBe(3)
    for (const [index, progressToken] of tokens.entries())
      server.notify('notifications/progress', { progressToken, progress: index + 1 })
    for (const call of calls) server.reply(call, textResult(''))
    await Promise.all(results)
    expect(progress).toEqual([[1], [2], [3]])
  })

  it('are cancelled when they are no longer needed, and a late response is ignored', async () => {
    proves('cancellation.clients-cancel', 'cancellation.ignore-late', 'cancellation.only-open')
    const server = new ScriptedServer(revision, {
      respond: ({ params }) => (params?.['name'] === 'quick' ? textResult('quick') : undefined),
    })
    const client = await server.connect()
    const controller = new AbortController()
    const { signal } = controller
    const pending = client.callTool('slow', {}, { signal })
    await client.callTool('quick', {}, { signal })
    await settle()
    controller.abort(new Error('enough'))
    await expect(pending).rejects.toThrow('enough')
    await settle()
    const slow = server.received.find(({ params }) => params?.['name'] === 'slow') ?? {}
    // Not for the request that was answered already, and only once.
    expect(server.paramsOf(cancelled).map(({ requestId }) => requestId)).toEqual([slow.id])
    server.reply(slow, textResult('late'))
    expect(await client.callTool('quick')).toMatchObject(textResult('quick'))
    expect(server.paramsOf(cancelled)).toHaveLength(1)
  })

  it('have timeouts that progress extends, with a maximum, and are then cancelled', async () => {
    proves('cancellation.timeouts')
    const calls: Sent[] = []
    const server = new ScriptedServer(revision, { respond: (call) => void calls.push(call) })
    const client = await server.connect()
    await onStillClock(async (pass) => {
      const silent = client
        .callTool('silent', {}, { timeout: 1000 })
        .catch((error: unknown) => error)
      const talking = client
        .callTool('talking', {}, { timeout: 1000, maxTimeout: 5000, onProgress: () => {} })
        .catch((error: unknown) => error)
      const ended: string[] = []
      void silent.then(() => ended.push('silent'))
      void talking.then(() => ended.push('talking'))
      await settle()
      const { progressToken } = metaOf(calls[1] ?? {})
      for (let progress = 1; progress <= 6; progress++) {
        await pass(900)
        server.notify('notifications/progress', { progressToken, progress })
        await settle()
        if (progress === 4) expect(ended).toEqual(['silent'])
      }
      expect(ended).toEqual(['silent', 'talking'])
      expect([await silent, await talking]).toEqual([
        expect.any(TimeoutError),
        expect.any(TimeoutError),
      ])
    })
    expect(server.paramsOf(cancelled).map(({ requestId }) => requestId)).toEqual(
      calls.map(({ id }) => id),
    )
  })

  it('report −32002 of an older server for a resource that does not exist', async () => {
    proves('errors.retired-clients', 'resources.older-code')
    const error = { code: -32_002, message: 'Resource not found', data: { uri: 'note://1' } }
    const server = new ScriptedServer(revision, { respond: () => ({ error }) })
    const client = await server.connect()
    const failure = await client.readResource('note://1').catch((thrown: unknown) => thrown)
    expect(failure).toBeInstanceOf(RpcError)
    expect(failure).toMatchObject(error)
  })

  it('return the failure of a tool as a result for the model', async () => {
    proves('tools.errors-to-model')
    const failed = { ...textResult('The date is in the past'), isError: true }
    const server = new ScriptedServer(revision, { respond: () => failed })
    expect(await (await server.connect()).callTool('book')).toMatchObject(failed)
  })
})

/* https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/pagination */
describe.each(ids)('the lists of a client in %s', (revision) => {
  /** Lists with the given pages; each cursor is used as it is. */
  function paginated(method: string, member: string, pages: Record<string, [string[], string?]>) {
    return new ScriptedServer(revision, {
      respond({ method: requested, params }) {
        expect(requested).toBe(method)
        const cursor = params?.['cursor'] as string | undefined
        const [names, nextCursor] = pages[cursor === undefined ? 'first' : `after ${cursor}`] ?? []
        if (names === undefined) return { error: { code: -32_602, message: 'Invalid cursor' } }
        const items = names.map((name) => ({ name, inputSchema: { type: 'object' } }))
        return { [member]: items, ...(nextCursor !== undefined && { nextCursor }) }
      },
    })
  }

  it('follow cursors of any form over pages of any size, until there is none', async () => {
    proves('pagination.page-size', 'pagination.clients', 'pagination.opaque')
    const odd = ' =?&"\\ 💥\u2028'
    const server = paginated('tools/list', 'tools', {
      first: [['a', 'b', 'c'], odd],
      [`after ${odd}`]: [[], '0'],
      'after 0': [['d'], 'eyJ9'],
      'after eyJ9': [['e', 'f']],
    })
    const tools = await collect((await server.connect()).tools())
    expect(tools.map(({ name }) => name)).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
    const whole = paginated('tools/list', 'tools', { first: [['a']] })
    expect(await collect((await whole.connect()).tools())).toHaveLength(1)
    expect(whole.methods).toEqual(['tools/list'])
  })

  it('do not end at an empty cursor', async () => {
    proves('pagination.empty-cursor')
    const server = paginated('tools/list', 'tools', { first: [['a'], ''], 'after ': [['b']] })
    expect(await collect((await server.connect()).tools())).toHaveLength(2)
  })

  it('have the prompts of all pages', async () => {
    proves('prompts.client-pages')
    const server = paginated('prompts/list', 'prompts', {
      first: [['a'], '2'],
      'after 2': [['b'], '3'],
      'after 3': [['c']],
    })
    const prompts = await collect((await server.connect()).prompts())
    expect(prompts.map(({ name }) => name)).toEqual(['a', 'b', 'c'])
  })
})

/* https://modelcontextprotocol.io/specification/2026-07-28/basic#resulttype */
describe('resultType', () => {
  it('is rejected if it is unknown, and is complete if it is missing', async () => {
    proves('base.result-type-unknown')
    const server = new ScriptedServer(modern, {
      hostile: true,
      respond({ id, params }, own) {
        if (params?.['name'] === 'odd') return { ...textResult(''), resultType: 'teapot' }
        own.send({ id, result: textResult('done') })
        return undefined
      },
    })
    const client = await server.connect()
    await expect(client.callTool('odd')).rejects.toThrow(/unknown resultType "teapot"/)
    expect(await client.callTool('missing')).toEqual(textResult('done'))
  })
})

it('sends no responses in a stateless revision, also to a server that asks', async () => {
  proves('stdio.no-responses')
  const reports: string[] = []
  const server = new ScriptedServer(modern, { hostile: true, respond: () => textResult('') })
  const client = await server.connect({
    roots: () => [],
    report: ({ message }) => reports.push(message),
  })
  for (const method of ['ping', 'roots/list', 'nope']) server.send({ id: method, method })
  await client.callTool('x')
  await settle()
  expect(server.received.filter(({ method }) => method === undefined)).toEqual([])
  expect(reports).toHaveLength(3)
  expect(reports[1]).toContain('roots/list')
})

/* https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr */
describe('multi round-trip requests of a client', () => {
  const question = {
    method: 'elicitation/create',
    params: { mode: 'form', message: '?', requestedSchema: { type: 'object', properties: {} } },
  }

  it('answer every input request, return the state unchanged, and have a new id', async () => {
    proves('mrtr.clients', 'mrtr.state-opaque', 'tools.retry-id')
    const requestState = '{"not":"yours"} \\u0000 💥 =='
    const server = new ScriptedServer(modern, {
      respond({ params }) {
        const { inputResponses } = params ?? {}
        if (inputResponses !== undefined || params?.['name'] === 'other') return textResult('done')
        const state = params?.['name'] === 'stateful' ? { requestState } : {}
        return {
          resultType: 'input_required',
          inputRequests: { one: question, two: { method: 'roots/list', params: {} } },
          ...state,
        }
      },
    })
    const client = await server.connect({
      elicit: () => ({ action: 'accept', content: {} }),
      roots: () => [{ uri: 'file:///a' }],
    })
    await Promise.all([
      client.callTool('stateful', { a: 1 }),
      client.callTool('stateless', { b: 2 }),
      client.callTool('other', { c: 3 }),
    ])
    const calls = server.received.filter(({ method }) => method === 'tools/call')
    expect(new Set(calls.map(({ id }) => id)).size).toBe(5)
    const sent = (name: string) =>
      calls
        .filter(({ params }) => params?.['name'] === name)
        .map(({ params = {} }) => {
          const { arguments: args, inputResponses: answers, requestState: state } = params
          return { arguments: args, inputResponses: answers, requestState: state }
        })
    const inputResponses = {
      one: { action: 'accept', content: {} },
      two: { roots: [{ uri: 'file:///a' }] },
    }
    expect(sent('stateful')).toEqual([
      { arguments: { a: 1 } },
      { arguments: { a: 1 }, inputResponses, requestState },
    ])
    expect(sent('stateless')).toEqual([
      { arguments: { b: 2 } },
      { arguments: { b: 2 }, inputResponses },
    ])
    expect(sent('other')).toEqual([{ arguments: { c: 3 } }])
  })
})

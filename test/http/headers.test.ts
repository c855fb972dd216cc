import { describe, expect, it } from 'vitest'
import { connect, memory } from '../../src/client.js'
import { type TokenVerifier, type HttpHeaders, httpHandler, nodeHandler } from '../../src/http.js'
import {
  type HttpRequest,
  type Server,
  createServer,
  form,
  prompt,
  resource,
  tool,
} from '../../src/index.js'
import {
  InitializedSession,
  statelessRequest,
  message,
  send,
  serving,
  withHeaders,
} from './caller.js'
import { onNode } from './embedding.js'

/* What handlers see of the HTTP request that carried their call. */

function headersServer(): { server: Server; seen: (HttpHeaders | undefined)[] } {
  const seen: (HttpHeaders | undefined)[] = []
  const note = ({ http }: { http: HttpRequest | undefined }) => {
    seen.push(http?.headers)
    return http?.headers['x-tenant'] ?? 'none'
  }
  const server = createServer({
    name: 's',
    version: '1',
    tools: [
      tool({ name: 'tenant', run: (_, call) => note(call) }),
      tool({
        name: 'ask',
        async run(_, call) {
          const before = note(call)
          const schema = { type: 'object', properties: {} } as const
          await call.ask({ sure: form({ message: 'Sure?', schema }) })
          return `${before} ${note(call)}`
        },
      }),
    ],
    resources: [resource({ uri: 'tenant://it', read: (_, call) => note(call) })],
    prompts: [prompt({ name: 'tenant', build: (_, call) => note(call) })],
  })
  return { server, seen }
}
const CREDENTIALS = {
  authorization: 'Bearer secret',
  'proxy-authorization': 'Basic secret',
  cookie: 'session=secret',
}
const tenant = (name: string) =>
  withHeaders(statelessRequest('tools/call', { name: 'tenant' }), {
    ...CREDENTIALS,
    'x-tenant': name,
  })

describe('call.http', () => {
  const places: Record<
    string,
    (server: Server, use: (url: string) => Promise<void>) => Promise<void>
  > = {
    listen: (server, use) => serving(server, {}, ({ url }) => use(url)),
    nodeHandler: (server, use) => onNode(nodeHandler(server), use),
  }
  it.each(Object.entries(places))(
    'has the headers, but no credentials, with %s',
    async (_, place) => {
      const { server, seen } = headersServer()
      await place(server, async (url) => {
        expect((await send(url, tenant('blue'))).text).toContain('"text":"blue"')
      })
      const [headers] = seen
      expect(headers).toMatchObject({
        'x-tenant': 'blue',
        'mcp-method': 'tools/call',
        'content-type': 'application/json',
      })
      expect(JSON.stringify(headers)).not.toContain('secret')
      // Any name may be asked for, and nothing be changed.
      expect(headers?.['constructor']).toBeUndefined()
      expect(() => Object.assign(headers ?? {}, { 'x-tenant': 'red' })).toThrow(TypeError)
    },
  )

  it('has the address of the client, with listen', async () => {
    const clients: unknown[] = []
    const where = tool({
      name: 'where',
      run: (_, { http }) => (clients.push(http?.client), 'done'),
    })
    const server = createServer({ name: 'where', version: '1', tools: [where] })
    const call = statelessRequest('tools/call', { name: 'where' })
    await serving(server, {}, async ({ url }) => void (await send(url, call)))
    expect(clients).toEqual([{ address: '127.0.0.1', port: expect.any(Number) }])
  })

  it('is the same with a fetch Request', async () => {
    const { server, seen } = headersServer()
    const { headers, body } = tenant('blue')
    await httpHandler(server)(
      new Request('http://localhost/', {
        method: 'POST',
        headers: headers as Record<string, string>,
        body: String(body),
      }),
    )
    expect(seen).toEqual([expect.objectContaining({ 'x-tenant': 'blue', 'mcp-name': 'tenant' })])
    expect(JSON.stringify(seen)).not.toContain('secret')
  })

  it('has the headers of its own request, also within a session and a batch', async () => {
    const { server, seen } = headersServer()
    await serving(server, {}, async ({ url }) => {
      const client = await InitializedSession.open(
        url,
        '2025-03-26',
        {},
        { 'x-tenant': 'initialize' },
      )
      const call = (id: number) => message('tools/call', { name: 'tenant' }, id)
      await client.post(call(1), { 'x-tenant': 'one' })
      await client.post(`[${call(2)},${call(3)}]`, { 'x-tenant': 'two' })
      await client.post(message('resources/read', { uri: 'tenant://it' }, 4), {
        'x-tenant': 'three',
      })
      await client.post(message('prompts/get', { name: 'tenant' }, 5), { 'x-tenant': 'four' })
    })
    expect(seen.map((headers) => headers?.['x-tenant'])).toEqual([
      'one',
      'two',
      'two',
      'three',
      'four',
    ])
    expect(seen.some((headers) => 'mcp-session-id' in (headers ?? {}))).toBe(false)
  })

  it('has the headers of each request of a call that has asked', async () => {
    const { server } = headersServer()
    await serving(server, {}, async ({ url }) => {
      const ask = (more: object, name: string) => {
        const _meta = {
          'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } },
        }
        const call = statelessRequest('tools/call', { name: 'ask', _meta, ...more })
        return send(url, withHeaders(call, { 'x-tenant': name }))
      }
      const { json } = await ask({}, 'first')
      const { requestState } = (json as { result: { requestState: string } }).result
      const answered = await ask(
        { requestState, inputResponses: { sure: { action: 'accept', content: {} } } },
        'second',
      )
      expect(answered.text).toContain('second second')
    })
  })

  it('is undefined without HTTP', async () => {
    const { server, seen } = headersServer()
    await using client = await connect(memory(server))
    await client.callTool('tenant')
    expect(seen).toEqual([undefined])
  })
})

describe('verify', () => {
  it('sees the headers, but no credentials beside its token', async () => {
    const { server } = headersServer()
    const seen: HttpHeaders[] = []
    const auth: TokenVerifier = {
      verify(token, { headers }) {
        seen.push(headers)
        return headers['x-tenant'] === 'blue' ? { id: token, scopes: [] } : undefined
      },
    }
    await serving(server, { auth }, async ({ url }) => {
      expect((await send(url, tenant('blue'))).status).toBe(200)
      expect((await send(url, tenant('red'))).status).toBe(401)
    })
    expect(seen).toHaveLength(2)
    expect(JSON.stringify(seen)).not.toContain('secret')
  })
})

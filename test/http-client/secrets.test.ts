import { inspect } from 'node:util'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { Secrets } from '../../src/auth/secrets.js'
import { type ConnectOptions, connect, http } from '../../src/client.js'
import type { LogEntry } from '../../src/jsonrpc/log-entry.js'
import { RpcError } from '../../src/jsonrpc/errors.js'
import { type Respond, event, json, result, scripted, stream } from './scripted.js'

/* A server repeats what authorizes the requests: it gets into no error and no report. */

const TOKEN = 'sEcReT/to+ken~0123456789=='
const OTHER = 'key-of-the-header-0123456789'

const shown = (secret: string, text: string): string => {
  const secrets = new Secrets()
  secrets.hide(secret)
  return secrets.redact(text)
}

describe('redaction', () => {
  it.each([
    ['as it is', `a ${TOKEN} b`, 'a [token] b'],
    ['twice', `${TOKEN}${TOKEN}`, '[token][token]'],
    ['in lower case', `a ${TOKEN.toLowerCase()} b`, 'a [token] b'],
    ['with escaped slashes', `{"a":"${TOKEN.replaceAll('/', '\\/')}"}`, '{"a":"[token]"}'],
    ['with escaped characters', `a ${TOKEN.replaceAll('s', '\\u0073')} b`, 'a [token] b'],
    ['percent-encoded', `a?b=${encodeURIComponent(TOKEN)}`, 'a?b=[token]'],
    ['as HTML', `<b>${TOKEN.replaceAll('/', '&#x2F;').replaceAll('+', '&#43;')}`, '<b>[token]'],
    ['encoded twice', encodeURIComponent(`a/${encodeURIComponent(TOKEN)}`), 'a/[token]'],
    ['once as it is and once encoded', `${TOKEN} ${encodeURIComponent(TOKEN)}`, '[token] [token]'],
    ['truncated', `a ${TOKEN.slice(0, 15)}… (26 characters)`, 'a [token]… (26 characters)'],
  ])('finds a token %s', (_case, text, expected) => {
    expect(shown(TOKEN, text)).toBe(expected)
  })

  it.each([
    ['without a secret', 'a%20b \\u0041 &#65; c:\\/d'],
    ['with less than its beginning', TOKEN.slice(0, 11)],
    ['with its end', TOKEN.slice(1)],
  ])('leaves text %s as it is', (_case, text) => {
    expect(shown(TOKEN, text)).toBe(text)
  })

  it('ignores secrets of less than eight characters, which occur by chance', () => {
    expect(shown('1234567', '1234567')).toBe('1234567')
    expect(shown('12345678', '12345678')).toBe('[token]')
  })

  it('takes the longest of several secrets that begin alike', () => {
    const secrets = new Secrets()
    for (const end of ['1', '234567', '2345']) secrets.hide(`eyJhbGciOiJSUzI1NiJ9.${end}`)
    expect(secrets.redact('a eyJhbGciOiJSUzI1NiJ9.234567 b eyJhbGciOiJSUzI1NiJ9.1 c')).toBe(
      'a [token] b [token] c',
    )
  })

  it('knows the latest 64', () => {
    const secrets = new Secrets()
    const names = Array.from({ length: 65 }, (_, index) => `${1000 + index}-secret`)
    for (const name of names) secrets.hide(name)
    expect(names.filter((name) => secrets.redact(name) === name)).toEqual(['1000-secret'])
  })

  it('searches text once for each secret, however often it has another one', () => {
    const secrets = new Secrets()
    for (const name of ['sk-live-0123456789', 'q8Zr1Tn5Lw0PqXy2', 'Jd82kLmNo13ZaQwe'])
      secrets.hide(name)
    const searches = vi.spyOn(String.prototype, 'indexOf')
    onTestFinished(() => searches.mockRestore())
    const shown = secrets.redact('sk-live-0123 '.repeat(1000))
    const { length } = searches.mock.calls
    expect(shown).toBe('[token] '.repeat(1000))
    // One for each hit, and one for each secret that is not there.
    expect(length).toBeLessThan(1010)
  })

  it.each([
    ['authorization', `Bearer ${TOKEN}`, [TOKEN]],
    ['Authorization', `Basic ${btoa('me:my password')}`, [btoa('me:my password'), 'my password']],
    ['authorization', 'Basic @@@@@@@@@@', ['@@@@@@@@@@']],
    ['authorization', 'Digest username="somebody", response="0a1b2c3d4e"', ['0a1b2c3d4e']],
    ['cookie', 'theme=dark; sid=0123456789', ['0123456789']],
    ['x-api-key', 'short-key', ['short-key']],
    ['x-honeycomb-team', '0123456789abcdef', ['0123456789abcdef']],
  ])('knows the secrets of %s: %s', (name, value, found) => {
    const secrets = new Secrets()
    secrets.add({ [name]: value })
    for (const secret of found) expect(secrets.redact(`a ${secret} b`)).toBe('a [token] b')
  })

  it.each([
    ['x-team', 'engineering'],
    ['user-agent', 'my client that is used by many'],
    ['user-agent', 'something/1.0.0-abcdefgh1'],
    ['origin', 'http://127.0.0.1:3000'],
    ['referer', 'https://www.example.com/a1b2c3d4e5'],
    ['x-callback', 'https://www.example.com/a1b2c3d4e5'],
    ['x-callback', '/hooks/a1b2c3d4e5f6a7b8'],
    ['traceparent', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'],
    ['x-session-mode', 'production'],
    ['x-auth-type', 'password'],
    ['x-region', 'us-east-1-production'],
    ['x-tenant', 'organization-engineering'],
    ['cookie', 'theme=darkmode; consent=accepted'],
  ])('takes %s: %s for no secret', (name, value) => {
    const secrets = new Secrets()
    secrets.add({ [name]: value })
    expect(secrets.redact(value)).toBe(value)
  })

  it.each([
    ['Basic', btoa('administrator:my password'), 'administrator: wrong [token]', 'my password'],
    ['Basic', btoa('administrator:short'), '[token], administrator', 'administrator:short'],
    ['Negotiate', 'YIIabcdefgh', 'Negotiate [token]', 'YIIabcdefgh'],
    ['Mybearer', 'abcdefghijkl', 'Mybearer [token]', 'abcdefghijkl'],
    ['Digest', 'username="somebody", nonce="0a1b2c3d4e"', 'somebody [token]', '0a1b2c3d4e'],
    ['Token', 'token="secret-words"', 'Token [token]', 'secret-words'],
    ['AWS4-HMAC-SHA256', 'SignedHeaders=host;x-amz-date', 'AWS4-HMAC-SHA256 x-amz-date', '-'],
  ])('hides of %s %s neither the scheme nor the user', (scheme, credentials, expected, secret) => {
    const secrets = new Secrets()
    secrets.add({ authorization: `${scheme} ${credentials}` })
    const text = expected.replace('[token]', secret)
    expect(secrets.redact(text)).toBe(expected)
  })

  it('never forgets those of the configuration', () => {
    const cookies = Array.from({ length: 70 }, (_, index) => `name${index}=value-of-${index}`)
    const secrets = new Secrets({ 'x-api-key': OTHER, cookie: cookies.join('; ') })
    secrets.keep(TOKEN)
    for (let count = 0; count < 100; count++)
      secrets.add({
        authorization: `DPoP token-${count}-0123456789`,
        dpop: `proof-${count}-01234567`,
      })
    expect(secrets.redact(`${OTHER} ${TOKEN} value-of-0 value-of-69`)).toBe(
      '[token] [token] [token] [token]',
    )
    expect(secrets.redact('proof-0-01234567 proof-99-01234567')).toBe('proof-0-01234567 [token]')
  })

  it('finds them in the names and values of JSON, however deep', () => {
    const secrets = new Secrets()
    secrets.hide(TOKEN)
    const value = { a: [{ [TOKEN]: `x${TOKEN}` }], b: 1, c: null }
    expect(secrets.redactValue(value)).toEqual({ a: [{ '[token]': 'x[token]' }], b: 1, c: null })
    const fine = { a: 'b' }
    expect(secrets.redactValue(fine)).toBe(fine)
    expect(secrets.redactJson(`{"a":"${TOKEN.replaceAll('/', '\\/')}","b":"c\\"d"}`)).toBe(
      '{"a":"[token]","b":"c\\"d"}',
    )
  })

  it('removes them from errors, their causes and stacks in place, also from frozen ones nothing throws', () => {
    const secrets = new Secrets()
    secrets.hide(TOKEN)
    const cause = new RpcError(1, `b ${TOKEN}`, { c: TOKEN })
    const error = new Error(`a ${TOKEN}`, { cause })
    secrets.redactError(error)
    expect(inspect([error, cause], { depth: 10, showHidden: true })).not.toContain(TOKEN)
    expect([error.message, cause.message, cause.data]).toEqual([
      'a [token]',
      'b [token]',
      { c: '[token]' },
    ])
    secrets.redactError(Object.freeze(new Error(TOKEN)))
    secrets.redactError(TOKEN)
  })
})

const details = {
  protocolVersion: '2025-11-25',
  capabilities: {},
  serverInfo: { name: 'x', version: '1' },
}
const escapedSlashes = (value: unknown) => JSON.stringify(value).replaceAll('/', '\\/')

/** A server that opens a session, and answers everything else as a row says. */
const opening =
  (respond: Respond): Respond =>
  (received, response, count) => {
    const { method, message } = received
    if (method === 'GET') return void response.writeHead(405).end()
    if (message.method === 'initialize') return json(response, 200, result(message.id, details))
    if (message.id === undefined) return void response.writeHead(202).end()
    respond(received, response, count)
  }

/** What was sent, as text. */
const said = `${TOKEN} ${OTHER}`
const REPLIES: [name: string, respond: Respond][] = [
  ['the body of an error', (_, response) => void response.writeHead(400).end(said)],
  [
    'a body with escaped slashes',
    (_, response) =>
      void response
        .writeHead(400, { 'content-type': 'application/json' })
        .end(escapedSlashes({ detail: said })),
  ],
  ['a long body', (_, response) => void response.writeHead(400).end(`${'x'.repeat(190)}${said}`)],
  [
    'a JSON-RPC error with HTTP 400',
    ({ message }, response) =>
      json(response, 400, {
        jsonrpc: '2.0',
        id: message.id,
        error: { code: -32000, message: said, data: { said } },
      }),
  ],
  [
    'a JSON-RPC error with HTTP 200',
    ({ message }, response) =>
      json(response, 200, {
        jsonrpc: '2.0',
        id: message.id,
        error: { code: -32000, message: said, data: { [said]: [said] } },
      }),
  ],
  [
    'a JSON-RPC error on a stream, with escaped slashes',
    ({ message }, response) =>
      stream(
        response,
        `data: ${escapedSlashes({ jsonrpc: '2.0', id: message.id, error: { code: 1, message: said } })}\n\n`,
      ),
  ],
  [
    'a Content-Type',
    (_, response) => void response.writeHead(200, { 'content-type': `a/${said}` }).end('x'),
  ],
  [
    'a Content-Encoding',
    (_, response) =>
      void response
        .writeHead(200, { 'content-encoding': said, 'content-type': 'application/json' })
        .end('x'),
  ],
  [
    'the host of a redirect',
    (_, response) =>
      void response.writeHead(307, { location: `https://${OTHER}.example/${TOKEN}` }).end(),
  ],
  ['what is no JSON', (_, response) => json(response, 200, said)],
  [
    'what is no response',
    ({ message }, response) =>
      json(response, 200, { jsonrpc: '2.0', id: message.id, error: said, result: said }),
  ],
]

async function connected(respond: Respond, options: ConnectOptions = {}) {
  const { url } = await scripted(respond)
  const reports: LogEntry[] = []
  const report = (entry: LogEntry) => void reports.push(entry)
  const authorizer = {
    headers: () => Promise.resolve({ authorization: `Bearer ${TOKEN}` }),
    challenged: () => Promise.resolve(false),
  }
  const target = http(url, { authorizer, headers: { 'x-api-key': OTHER } })
  const opened = connect(target, { revision: '2025-11-25', report, ...options })
  return { opened, reports }
}

function expectHidden(...values: unknown[]): void {
  const text = inspect(values, { depth: 20, showHidden: true }).toLowerCase()
  expect(text).not.toContain(TOKEN.slice(0, 12).toLowerCase())
  expect(text).not.toContain(OTHER.slice(0, 12))
}

describe('a server that repeats the token and a header in', () => {
  it.each(REPLIES)('%s', async (_name, respond) => {
    const { opened, reports } = await connected(opening(respond))
    const client = await opened
    const error: unknown = await client.callTool('x').catch((thrown: unknown) => thrown)
    await client.close()
    expect(error).toBeInstanceOf(Error)
    expectHidden(error, reports)
  })

  it('its choice of a revision', async () => {
    const { opened, reports } = await connected(({ message }, response) =>
      json(response, 200, result(message.id, { ...details, protocolVersion: said })),
    )
    const error: unknown = await opened.catch((thrown: unknown) => thrown)
    expect(String(error)).toContain('[token]')
    expectHidden(error, reports)
  })

  it('a message that is reported only', async () => {
    const { opened, reports } = await connected(
      opening(({ message }, response) =>
        stream(
          response,
          `data: ${said}\n\n${event({ jsonrpc: '2.0', id: said, method: said })}${event(result(message.id, { tools: [] }))}`,
        ),
      ),
    )
    const client = await opened
    await client.request('tools/list', {})
    await client.close()
    expect(reports.length).toBeGreaterThan(0)
    expectHidden(reports)
  })

  it('structured content that does not fit, an output schema and a cursor', async () => {
    const inputSchema = { type: 'object' }
    const tools = [
      { name: 'a', inputSchema, outputSchema: { type: 'object', additionalProperties: false } },
      { name: 'b', inputSchema, outputSchema: { type: 'object', [`$ref`]: `https://${OTHER}` } },
    ]
    const received = { content: [], structuredContent: { [OTHER]: said } }
    const { opened, reports } = await connected(
      opening(({ message: { id, method } }, response) => {
        if (method === 'tools/list') return json(response, 200, result(id, { tools }))
        if (method === 'tools/call') return json(response, 200, result(id, received))
        json(response, 200, result(id, { prompts: [], nextCursor: said }))
      }),
      { validateResults: true },
    )
    const client = await opened
    const thrown = (error: unknown) => error
    const unfit = await client.callTool('a').catch(thrown)
    expect(unfit).toMatchObject({
      message: expect.stringContaining('[token]') as string,
      issues: [{ path: '[token]' }],
      result: received,
    })
    const output = { type: 'object', additionalProperties: false } as const
    const other = await client.callTool('c', {}, { output }).catch(thrown)
    expect(await client.callTool('b')).toEqual(received)
    const endless = await client.prompts().next().catch(thrown)
    await client.close()
    expect(reports).toMatchObject([{ message: expect.stringContaining('[token]') as string }])
    expect(endless).toBeInstanceOf(Error)
    // The result is what the server sent.
    for (const error of [unfit, other]) Reflect.deleteProperty(error as object, 'result')
    expectHidden(unfit, other, endless, reports)
  })

  it('a result: that is data, and stays as it is', async () => {
    const { opened } = await connected(
      opening(({ message }, response) =>
        json(response, 200, result(message.id, { content: [{ type: 'text', text: said }] })),
      ),
    )
    const client = await opened
    expect((await client.callTool('x')).content).toEqual([{ type: 'text', text: said }])
    await client.close()
  })
})

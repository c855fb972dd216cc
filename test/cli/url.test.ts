import {
  type IncomingMessage,
  type RequestListener,
  createServer as createHttpServer,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '../../scripts/free-port.mjs'
import { type Listening, listen, tokens } from '../../src/http.js'
import { ToolError, createServer, prompt, resource, tool } from '../../src/index.js'
import { Child } from '../stdio/child.js'
import { CLI, cli } from './command.js'

const TOKEN = 'Rd9q-x0wXv4vZbJ2mK7t'
const add = tool({
  name: 'add',
  input: {
    type: 'object',
    properties: { a: { type: 'number' }, b: { type: 'number' } },
    required: ['a', 'b'],
  },
  run: ({ a, b }) => String(a + b),
})
const note = resource({ uri: 'note://a', read: () => 'a note' })
const greet = prompt({
  name: 'greet',
  arguments: { name: {} },
  build: ({ name }) => `Greet ${name}`,
})
const server = createServer({
  name: 'web',
  version: '1.0.0',
  tools: [add],
  resources: [note],
  prompts: [greet],
})
const QUIET = { port: 0, log: { write: () => true } } as const
let listening: Awaited<ReturnType<typeof listen>>
let folder = ''
beforeAll(async () => {
  listening = await listen(server, QUIET)
  folder = mkdtempSync(join(tmpdir(), 'ccmcp-url-'))
})
afterAll(async () => {
  await listening.close(0)
  rmSync(folder, { recursive: true, force: true })
})

const cleanups: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup()
})

/** An HTTP server that answers every request in the same way; returns its origin. */
async function httpServer(answer: RequestListener): Promise<string> {
  const http = createHttpServer(answer)
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  cleanups.push(
    () =>
      new Promise((resolve) => {
        http.close(() => resolve())
        http.closeAllConnections()
      }),
  )
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}`
}

describe('a server at a URL', () => {
  it('is listed, called and read', async () => {
    const { url } = listening
    const [listed, called, read, prompted] = await Promise.all([
      cli(['list', url]),
      cli(['call', 'add', url, 'a=2', 'b=40']),
      cli(['read', 'note://a', url]),
      cli(['prompt', 'greet', url, 'name=Ada']),
    ])
    expect(listed.stdout).toContain('web 1.0.0, protocol 2026-07-28\n')
    expect(called).toEqual({ code: 0, stdout: '42\n', stderr: '' })
    expect(read).toEqual({ code: 0, stdout: 'a note', stderr: '' })
    expect(prompted).toEqual({ code: 0, stdout: 'user: Greet Ada\n', stderr: '' })
  })
  it('is called in an earlier revision', async () => {
    const { stdout, code } = await cli([
      'call',
      'add',
      listening.url,
      '--revision',
      '2025-03-26',
      '--args',
      '{"a":2,"b":40}',
    ])
    expect([stdout, code]).toEqual(['42\n', 0])
  })
  it('replays and records transcripts, with and without a handshake', async () => {
    const meta =
      '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}'
    const file = join(folder, 'session.txt')
    writeFileSync(
      file,
      `> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":2,"b":40},${meta}}}
> {"jsonrpc":"2.0","id":2,"method":"nope","params":{${meta}}}
`,
    )
    expect(await cli(['play', file, listening.url, '--record'])).toMatchObject({
      code: 0,
      stderr: '',
    })
    expect(readFileSync(file, 'utf8')).toMatch(/"text":"42"[\s\S]*-32601/)
    expect(await cli(['play', file, listening.url])).toEqual({
      code: 0,
      stdout: `${file}: 2 messages sent, 2 received as expected\n`,
      stderr: '',
    })
    writeFileSync(
      file,
      `> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
< {"jsonrpc":"2.0","id":1,"result":*}
> {"jsonrpc":"2.0","method":"notifications/initialized"}
> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add","arguments":{"a":2,"b":40}}}
< {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"41"}],"isError":false}}
`,
    )
    const { stdout, code } = await cli(['play', file, listening.url])
    expect(stdout).toContain('result.content[0].text is "42", not "41"')
    expect(code).toBe(1)
    writeFileSync(file, '> {nope\n')
    expect(await cli(['play', file, listening.url])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('only single JSON-RPC messages can be sent'),
    })
    writeFileSync(file, '> {"jsonrpc":"2.0","id":1,"method":"ping"}\n< *\n')
    expect(await cli(['play', file, 'http://127.0.0.1:1/mcp'])).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('nothing accepts connections at 127.0.0.1, port 1'),
    })
  })
  it('gets the Mcp-Param headers that a tool requires from play', async () => {
    const region = { type: 'string', 'x-mcp-header': 'Region' } as const
    const deploy = tool({
      name: 'deploy',
      input: { type: 'object', properties: { region }, required: ['region'] },
      run: ({ region: name }, { http }) => `${name} ${String(http?.headers['mcp-param-region'])}`,
    })
    const routed = createServer({ name: 'routed', version: '1.0.0', tools: [deploy] })
    const { url, close } = await listen(routed, QUIET)
    cleanups.push(() => close(0))
    const file = join(folder, 'headers.txt')
    const meta =
      '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}'
    writeFileSync(
      file,
      `> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"deploy","arguments":{"region":"eu"},${meta}}}
< {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"eu eu"}],"isError":false,"resultType":"complete","_meta":*}}
`,
    )
    expect(await cli(['play', file, url])).toEqual({
      code: 0,
      stdout: `${file}: 1 message sent, 1 received as expected\n`,
      stderr: '',
    })
  })
  it('may be one of the official SDK', async () => {
    const origin = await httpServer((request, response) => {
      const sdk = new McpServer({ name: 'sdk', version: '1.0.0' })
      sdk.registerTool('hello', { description: 'Says hello' }, () => ({
        content: [{ type: 'text', text: 'Hello from the SDK' }],
      }))
      const transport = new StreamableHTTPServerTransport()
      void sdk
        // The type of `onclose` differs under exactOptionalPropertyTypes.
        .connect(transport as Parameters<typeof sdk.connect>[0])
        .then(() => transport.handleRequest(request, response))
    })
    expect((await cli(['list', `${origin}/mcp`])).stdout).toContain('sdk 1.0.0, protocol 2025-')
    expect(await cli(['call', 'hello', `${origin}/mcp`])).toEqual({
      code: 0,
      stdout: 'Hello from the SDK\n',
      stderr: '',
    })
  })
})

describe('--header and --token-env', () => {
  const seen: IncomingMessage['headers'][] = []
  const guarded = () =>
    httpServer((request, response) => {
      seen.push(request.headers)
      response.writeHead(401, {
        'www-authenticate':
          'Bearer error="invalid_token", error_description="Old token", scope="a b"',
      })
      response.end(`No access with ${request.headers.authorization}`)
    })

  it('are sent, and the token is never printed', async () => {
    const origin = await guarded()
    const { stdout, stderr, code } = await cli(
      [
        'list',
        `${origin}/mcp`,
        '--token-env',
        'T',
        '--header',
        'X-One: 1',
        '--header',
        'x-two: 2',
        '--verbose',
      ],
      '',
      { env: { T: TOKEN } },
    )
    expect(seen.at(-1)).toMatchObject({
      authorization: `Bearer ${TOKEN}`,
      'x-one': '1',
      'x-two': '2',
    })
    expect(stdout + stderr).not.toContain(TOKEN)
    expect(stderr).toContain(
      `Cannot use ${origin}/mcp: HTTP 401 ("No access with Bearer [token]"): the server does not accept the token in T (scope "a b", Old token). It may have expired\n`,
    )
    expect([stdout, code]).toEqual(['', 3])
  })
  it('are never printed, however the server repeats them', async () => {
    const key = 'Kx7+q2w9/eR4tY6uI8oP'
    const said: string[] = []
    const origin = await httpServer((request, response) => {
      const { authorization = '', 'x-api-key': header = '' } = request.headers
      const text = `${authorization} ${String(header)}`
      said.push(text)
      const escaped = text.replaceAll('/', '\\/')
      response.writeHead(403, {
        'content-type': 'application/json',
        'www-authenticate': `Bearer error_description="${escaped}", scope="${text}"`,
      })
      response.end(`{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"${escaped}"}}`)
    })
    const headers = ['--header', `X-Api-Key: ${key}`]
    const given = ['--token-env', 'T']
    const { stdout, stderr, code } = await cli(
      ['list', `${origin}/mcp`, ...given, ...headers, '--verbose', '--json'],
      '',
      { env: { T: `${TOKEN}/+` } },
    )
    expect(said.at(-1)).toBe(`Bearer ${TOKEN}/+ ${key}`)
    expect(stderr).toContain(
      `HTTP 403 ("Bearer [token] [token]"): the server refuses access (scope "Bearer [token] [token]", Bearer [token] [token])`,
    )
    expect(stdout + stderr).not.toMatch(/Rd9q-x0w|Kx7\+q2w9/)
    expect(code).toBe(3)
  })
  it('are not printed as part of a message or of the log of the server', async () => {
    const printed = tool({
      name: 'print',
      run: (_, { http, log }) => {
        const token = http?.headers['x-api-key'] ?? ''
        log.warning(`log ${token}`)
        throw new ToolError(`failed ${token}`)
      },
    })
    const { url, close } = await listen(
      createServer({ name: 'web', version: '1.0.0', tools: [printed] }),
      QUIET,
    )
    cleanups.push(() => close(0))
    const args = ['call', 'print', url, '--header', `X-Api-Key: ${TOKEN}`, '--verbose']
    const { stdout, stderr } = await cli([...args, '--log-level', 'info'])
    expect(stderr).toContain('] log [token]\n')
    expect(stderr).toContain('print failed: failed [token]\n')
    expect(stdout + stderr).not.toContain(TOKEN)
    expect((await cli([...args, '--json'])).stdout).toContain('failed [token]')
  })
  it('are not in a report of "ccmcp check", whatever its format, and not in its baseline', async () => {
    const server = createServer({ name: 'web', version: '1.0.0', tools: [] })
    const { url, close } = await listen(server, QUIET)
    cleanups.push(() => close(0))
    const baseline = join(folder, 'baseline.json')
    const args = ['check', url, '--header', `X-Api-Key: ${TOKEN}`, '--expect-tool', TOKEN]
    for (const more of [
      ['--format', 'junit'],
      ['--format', 'sarif', '--update-baseline', '--baseline', baseline],
    ]) {
      const { stdout, stderr } = await cli([...args, ...more])
      expect(stdout).toContain('[token]')
      expect(stdout + stderr).not.toContain(TOKEN)
    }
    expect(readFileSync(baseline, 'utf8')).toContain('[token]')
    expect(readFileSync(baseline, 'utf8')).not.toContain(TOKEN)
  })
  it('of "ccmcp login" are not printed either', async () => {
    const origin = await httpServer((request, response) => {
      const { authorization = '' } = request.headers
      const challenge = `Bearer error="forbidden", error_description="${authorization}"`
      response.writeHead(403, { 'www-authenticate': challenge, 'content-type': authorization })
      response.end(`${authorization} is not enough`)
    })
    const url = `${origin}/mcp`
    const pointer = { issuer: origin, resource: url, clientId: 'c' }
    const authorization = {
      issuer: origin,
      resource: url,
      accessToken: TOKEN,
      client: { id: 'c', method: 'none' },
      metadata: { issuer: origin, token_endpoint: `${origin}/token` },
      requested: [],
      granted: [],
    }
    mkdirSync(join(folder, 'ccmcp'))
    writeFileSync(
      join(folder, 'ccmcp', 'tokens.json'),
      JSON.stringify({
        [`server ${url}`]: JSON.stringify(pointer),
        [`tokens ${origin} ${url} c`]: JSON.stringify(authorization),
      }),
      { mode: 0o600 },
    )
    const { stdout, stderr } = await cli(['list', url, '--verbose'], '', {
      env: { XDG_CONFIG_HOME: folder },
    })
    expect(stderr).toContain('[token]')
    expect(stdout + stderr).not.toContain(TOKEN)
  })
  it('say how to pass a token', async () => {
    const origin = await guarded()
    expect((await cli(['list', origin])).stderr).toContain(
      'the server requires authorization (scope "a b", Old token). Log in with "ccmcp login URL", or pass a token with --token-env NAME',
    )
  })
  it('do not follow a redirect to another origin', async () => {
    const elsewhere: unknown[] = []
    const other = await httpServer((request, response) => {
      elsewhere.push(request.headers)
      response.end()
    })
    const origin = await httpServer((_, response) => {
      response.writeHead(307, { location: `${other}/mcp` }).end()
    })
    const { stderr, code } = await cli(['list', origin, '--token-env', 'T'], '', {
      env: { T: TOKEN },
    })
    expect(stderr).toContain(`to another origin, ${other}, which is not followed`)
    expect([elsewhere, code]).toEqual([[], 3])
  })
  it('work with a server of ours', async () => {
    const auth = tokens([{ token: TOKEN, id: 'ada', scopes: [] }])
    const { url, close } = await listen(server, { ...QUIET, auth })
    cleanups.push(() => close(0))
    const args = ['call', 'add', url, 'a=1', 'b=2', '--token-env', 'T']
    expect((await cli(args, '', { env: { T: TOKEN } })).stdout).toBe('3\n')
    expect((await cli(args, '', { env: { T: 'other' } })).code).toBe(3)
  })
  it.each<[string[], Record<string, string>, string]>([
    [['--header', 'nope'], {}, `--header must be 'Name: value', not "nope"`],
    [['--header', ': x'], {}, `--header must be 'Name: value', not ": x"`],
    [['--header', 'a b: x'], {}, '--header: "a b" is not a header name'],
    [
      ['--header', 'X: a\nb'],
      {},
      '--header: the value of X has characters that a header cannot have',
    ],
    [['--header', 'X: 世'], {}, '--header: the value of X has characters'],
    [['--header', 'X:'], {}, '--header: X has no value'],
    [
      ['--header', 'Mcp-Method: x'],
      {},
      '--header: the header "mcp-method" is set by the transport',
    ],
    [['--token-env', 'a b'], {}, '--token-env: expected the name of an environment variable'],
    [['--token-env', 'NOT_SET_T'], {}, '--token-env: the variable NOT_SET_T is not set'],
    [['--token-env', 'T'], { T: '' }, '--token-env: the variable T is empty'],
    [
      ['--token-env', 'T'],
      { T: 'Bearer x' },
      '--token-env: the variable T must have the token only',
    ],
    [['--token-env', 'T'], { T: 'x\ny' }, '--token-env: the variable T is not a token'],
    [
      ['--token-env', 'T'],
      { T: 'x', http_proxy: 'http://p:1', no_proxy: '' },
      '--token-env: the token would go to the proxy',
    ],
    [
      ['--token-env', 'T', '--header', 'authorization: y'],
      { T: 'x' },
      '--token-env and a header "Authorization"',
    ],
    [['--framing', 'lines'], {}, '--framing is for servers on stdio'],
  ])('%j is an invalid command line', async (args, env, problem) => {
    const { stdout, stderr, code } = await cli(['list', 'http://127.0.0.1:1/mcp', ...args], '', {
      env,
    })
    expect(stderr.slice(0, 'ccmcp: '.length + problem.length)).toBe(`ccmcp: ${problem}`)
    expect([stdout, code]).toEqual(['', 2])
  })
  it.each<[string[], string]>([
    [
      ['http://example.com/mcp', '--token-env', 'T'],
      'a token is sent over https: only (http: on this machine), not to http://example.com; use https://example.com/mcp',
    ],
    [['http://u:p@127.0.0.1:1/'], 'The URL must not contain a user name or password'],
    [['https://'], '"https://" is not a URL; expected https://HOST/PATH'],
    [
      ['localhost:1/mcp'],
      '"localhost:1/mcp" is not a file; did you mean the URL http://localhost:1/mcp?',
    ],
    [['example.com/mcp'], 'did you mean the URL https://example.com/mcp?'],
    [['text', '--header', 'a: b'], '--header is for a server at a URL'],
    [['--token-env', 'T', '--', 'node'], '--token-env is for a server at a URL'],
  ])('%j is an invalid target', async (args, problem) => {
    const { stderr, code } = await cli(['list', ...args], '', { env: { T: TOKEN } })
    expect(stderr).toContain(problem)
    expect(stderr).not.toContain(TOKEN)
    expect(code).toBe(2)
  })
})

describe('no connection to a URL is explained in one line', () => {
  it.each<[number, string, string, string]>([
    [
      200,
      'text/html',
      '<html>',
      'it responded with a web page, not with MCP. Check the path of the URL; many servers use /mcp',
    ],
    [200, 'application/json', '{}', 'It is probably not an MCP endpoint'],
    [403, 'text/plain', 'no', 'HTTP 403 ("no"): the server refuses access'],
    [404, 'text/html', '<html>', 'HTTP 404: there is no MCP endpoint here. Check the path'],
    [405, 'text/plain', '', 'HTTP 405: the server does not accept POST here'],
    [429, 'text/plain', '', 'HTTP 429: too many requests'],
    [503, 'text/plain', 'down', 'HTTP 503 ("down"): the server has failed'],
  ])('HTTP %i, %s', async (status, type, body, problem) => {
    const origin = await httpServer((_, response) => {
      response.writeHead(status, { 'content-type': type }).end(body)
    })
    const { stdout, stderr, code } = await cli(['list', `${origin}/x`])
    expect(stderr).toContain(`ccmcp: Cannot use ${origin}/x: `)
    expect(stderr).toContain(problem)
    expect(stderr.match(/\n/g)).toHaveLength(1)
    expect([stdout, code]).toEqual(['', 3])
  })
  it.each([
    ['http://127.0.0.1:1/mcp', 'nothing accepts connections at 127.0.0.1, port 1'],
    ['http://no-such-host.invalid/mcp', 'the host no-such-host.invalid was not found'],
  ])('%s', async (url, problem) => {
    const { stderr, code } = await cli(['call', 'x', url])
    expect(stderr).toContain(problem)
    expect([stderr.match(/\n/g)?.length, code]).toEqual([1, 3])
  })
  it('https: to a server without TLS', async () => {
    const url = listening.url.replace('http:', 'https:')
    const { stderr, code } = await cli(['list', url])
    expect(stderr).toContain('the server does not speak TLS here. Try http: instead of https:')
    expect([stderr.match(/\n/g)?.length, code]).toEqual([1, 3])
  })
})

describe('a certificate', () => {
  const pem = (name: string) => fileURLToPath(new URL(`../http/tls/${name}.pem`, import.meta.url))
  const key = readFileSync(pem('key'), 'utf8')
  /** Lists a server with this certificate; `trusts` names the certificate that the client trusts. */
  async function listed(certificate: string, trusts?: string) {
    const tls = { key, cert: readFileSync(pem(certificate), 'utf8') }
    const { url, close } = await listen(server, { ...QUIET, tls })
    cleanups.push(() => close(0))
    return cli(['list', url], '', {
      env: trusts === undefined ? {} : { NODE_EXTRA_CA_CERTS: pem(trusts) },
    })
  }
  it('that is trusted is accepted', async () => {
    expect(await listed('cert', 'cert')).toMatchObject({ code: 0, stderr: '' })
  })
  it.each<[string, string, string | undefined, string]>([
    [
      'not trusted',
      'cert',
      undefined,
      'the certificate of the server is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT). Set NODE_EXTRA_CA_CERTS to the PEM file of its certificate authority',
    ],
    [
      'expired',
      'expired',
      'expired',
      'the certificate of the server has expired. It must be renewed',
    ],
    [
      'for another host',
      'other-host',
      'other-host',
      'the certificate of the server is for another host, not 127.0.0.1',
    ],
  ])('that is %s is explained in one line', async (_, certificate, trusts, problem) => {
    const { stdout, stderr, code } = await listed(certificate, trusts)
    expect(stderr).toMatch(/^ccmcp: Cannot use https:\/\/127\.0\.0\.1:\d+\/mcp: .*\n$/)
    expect(stderr).toContain(problem)
    expect([stdout, code]).toEqual(['', 3])
  })
})

describe('ccmcp subscribe', () => {
  let value = 1
  /** Before 2026-07-28, the stream is opened independently of the subscription. */
  const streamOf = (served: Listening) => expect.poll(() => served.openResponses).toBe(1)
  const watched = createServer({
    name: 'watched',
    version: '1.0.0',
    resources: [resource({ uri: 'sensor://a', read: () => `value ${value}` })],
  })
  const subscribing = async (...options: string[]) => {
    const served = await listen(watched, QUIET)
    cleanups.push(() => served.close(0))
    const args = [CLI, 'subscribe', 'sensor://a', served.url, '--read', ...options]
    return { served, child: new Child(process.execPath, args) }
  }
  it.each([['2026-07-28'], ['2025-06-18']])('prints updates until Ctrl-C: %s', async (revision) => {
    const { served, child } = await subscribing('--json', '--revision', revision)
    await child.said('subscribed to sensor://a; press Ctrl-C to stop')
    await streamOf(served)
    value = 7
    watched.updated('sensor://a')
    expect(JSON.parse(await child.line(0))).toEqual({
      time: expect.stringMatching(/^\d{4}-.*Z$/),
      uri: 'sensor://a',
      contents: [{ uri: 'sensor://a', text: 'value 7' }],
    })
    child.give('SIGINT')
    await child.closed()
    expect(child.code).toBe(0)
  })
  it.each([['2026-07-28'], ['2025-06-18']])('prints text without --json: %s', async (revision) => {
    const { served, child } = await subscribing('--revision', revision)
    await child.said('subscribed to sensor://a; press Ctrl-C to stop\n')
    await streamOf(served)
    value = 8
    watched.updated('sensor://a')
    expect(await child.line(0)).toMatch(/^\d{4}-.*Z sensor:\/\/a updated$/)
    expect(await child.line(1)).toBe('sensor://a (unknown type)')
    expect(await child.line(2)).toBe('value 8')
    child.give('SIGINT')
    await child.closed()
    expect(child.code).toBe(0)
  })
  it.each([['2026-07-28'], ['2025-06-18']])(
    'connects again when the server is restarted: %s',
    async (revision) => {
      const options = { ...QUIET, port: await freePort() }
      const first = await listen(watched, options)
      const args = [CLI, 'subscribe', 'sensor://a', first.url, '--revision', revision]
      const child = new Child(process.execPath, args)
      await child.said('subscribed to sensor://a')
      await first.close(0)
      const second = await listen(watched, options)
      cleanups.push(() => second.close(0))
      expect(await child.line(0)).toMatch(
        /Z sensor:\/\/a may have been updated while disconnected$/,
      )
      await streamOf(second)
      watched.updated('sensor://a')
      expect(await child.line(1)).toMatch(/Z sensor:\/\/a updated$/)
      child.give('SIGINT')
      await child.closed()
      expect(child.code).toBe(0)
    },
  )
  it('says so if the server has no subscriptions', async () => {
    const { url, close } = await listen(
      createServer({ name: 'x', version: '1.0.0', tools: [add] }),
      QUIET,
    )
    cleanups.push(() => close(0))
    const { stderr, code } = await cli(['subscribe', 'sensor://a', url])
    expect(stderr).toMatch(/^ccmcp: .*subscri.*\n$/)
    expect(code).toBe(1)
  })
})

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { begin, send, statelessRequest, withHeaders } from './caller.js'
import { SseCaller } from './sse-caller.js'

/* `ccmcp serve --http`, as a process. */

const cli = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))
const tls = (name: string) => fileURLToPath(new URL(`tls/${name}.pem`, import.meta.url))
const environment = { ...process.env }
delete environment['NODE_EXTRA_CA_CERTS']
const folder = mkdtempSync(join(tmpdir(), 'ccmcp-http-'))
const file = (name: string, text: string) => {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}
const children: ChildProcess[] = []
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

async function start(
  ...args: string[]
): Promise<{ child: ChildProcess; url: string; exited: Promise<number | null> }> {
  const child = spawn(process.execPath, [cli, 'serve', '--http', '--port', '0', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: environment,
  })
  children.push(child)
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve))
  const url = await new Promise<string>((resolve, reject) => {
    let log = ''
    child.stderr?.on('data', (chunk: Buffer) => {
      log += chunk.toString()
      const [, found] = /serving (\S+)\n/.exec(log) ?? []
      if (found !== undefined) resolve(found)
    })
    void exited.then(() => reject(new Error(log)))
  })
  return { child, url, exited }
}

const add = (headers: object = {}) => {
  const sending = statelessRequest('tools/call', { name: 'add', arguments: { a: 2, b: 40 } })
  return { ...sending, headers: { ...(sending.headers as Record<string, string>), ...headers } }
}

describe('ccmcp serve --http', () => {
  it('serves until a signal', async () => {
    const { child, url, exited } = await start()
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/)
    expect((await send(url, add())).text).toContain('42')
    child.kill('SIGTERM')
    expect(await exited).toBe(0)
  })

  it('serves HTTP+SSE with --sse', async () => {
    const { child, url, exited } = await start('--sse')
    const caller = await SseCaller.initialized(new URL('/sse', url).href)
    await caller.call('add', { a: 2, b: 40 }, 'sum')
    await caller.stream.has('"id":"sum"')
    child.kill('SIGTERM')
    await caller.stream.ended()
    expect(await exited).toBe(0)
  })

  it('serves callers with a token', async () => {
    const known = file(
      'tokens.json',
      JSON.stringify([{ token: 'a-token-of-some-length', id: 'me' }]),
    )
    const { url } = await start(
      '--tokens',
      known,
      '--host',
      '0.0.0.0',
      '--hosts',
      'mcp.example.com,other.example.com',
    )
    const local = url.replace('localhost', '127.0.0.1')
    expect((await send(local, add())).status).toBe(401)
    expect(
      (
        await send(
          local,
          add({ authorization: 'Bearer a-token-of-some-length', host: 'other.example.com' }),
        )
      ).status,
    ).toBe(200)
  })

  it.each([
    ['ccmcp', 1_048_576],
    ['text', 4_194_304],
  ])(
    'refuses a message of %s that is longer than the default of --max-message',
    async (name, size) => {
      const { url } = await start(name)
      const { headers, body } = statelessRequest('tools/list')
      const accepted = await send(url, { headers, body: body.toString().padEnd(size) })
      // Only the headers: it is refused before its body is sent.
      const longer = begin(url, withHeaders({ headers }, { 'content-length': String(size + 1) }))
      longer.request.flushHeaders()
      const refused = await longer.response
      expect([accepted.status, refused.status]).toEqual([200, 413])
      refused.disconnect()
      const help = spawnSync(process.execPath, [cli, 'serve', '--help'], {
        encoding: 'utf8',
      }).stdout
      expect(help).toContain(String(size))
    },
  )

  it('serves https', async () => {
    const { url } = await start('--tls-cert', tls('cert'), '--tls-key', tls('key'))
    expect(url).toMatch(/^https:/)
  })

  it.each<[string, string[], string]>([
    ['a port that is none', ['--port', 'x'], '--port must be a number'],
    ['every address, without tokens', ['--host', '0.0.0.0'], '--unauthenticated'],
    ['half of a certificate', ['--tls-cert', 'x'], 'must be used together'],
    ['a certificate that is not there', ['--tls-cert', '/nope', '--tls-key', '/nope'], 'ENOENT'],
    [
      'a certificate that is a key',
      ['--tls-cert', tls('key'), '--tls-key', tls('cert')],
      'The TLS certificate and key cannot be used',
    ],
    ['tokens that are none', ['--tokens', file('bad.json', '{}')], 'must be a JSON array'],
    [
      'tokens that cannot be read',
      ['--tokens', file('broken.json', '[{"token":"secret"')],
      'is not valid JSON at position',
    ],
    [
      'a module that starts its own transport',
      [file('itself.mjs', 'process.exit(0)')],
      'export the server instead, or run it with node',
    ],
    [
      'tokens that are short',
      ['--tokens', file('short.json', '[{"token":"x","id":"y"}]')],
      'at least 16',
    ],
    ['an origin that is none', ['--origins', 'example.com'], 'must list origins'],
    [
      'a name that is an address of the web',
      ['--hosts', 'https://mcp.example.com/'],
      'must list names such as mcp.example.com',
    ],
  ])('says what is wrong with %s', (_, args, words) => {
    const { status, stderr } = spawnSync(
      process.execPath,
      [cli, 'serve', '--http', '--port', '0', ...args],
      {
        encoding: 'utf8',
        env: environment,
      },
    )
    expect(stderr).toContain(words)
    expect(status).toBe(2)
  })

  it('says that a port is in use', async () => {
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    const { port } = other.address() as { port: number }
    const { status, stderr } = spawnSync(
      process.execPath,
      [cli, 'serve', '--http', '--port', String(port)],
      {
        encoding: 'utf8',
        env: environment,
      },
    )
    other.close()
    expect([status, stderr]).toEqual([
      2,
      expect.stringContaining(`Port ${port} is in use; choose another with --port`),
    ])
  })
})

import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { freePort } from '../../scripts/free-port.mjs'
import { type Listening, listen } from '../../src/http.js'
import { createServer, form, tool } from '../../src/index.js'
import { InitializedSession, type Sending, statelessRequest, open, send } from './caller.js'

/* Several processes behind a load balancer, and the configuration of docs/deploying.md where there is an nginx to run it. */

const until = (condition: () => unknown) => vi.waitFor(condition, { timeout: 60_000, interval: 5 })
const page = readFileSync(new URL('../../docs/deploying.md', import.meta.url), 'utf8')
const [, configuration = ''] = /```nginx\n([\s\S]*?)```/.exec(page) ?? []

const running = new Map<string, string>()
function processOf(name: string) {
  return createServer({
    name: 'behind',
    version: '1',
    state: { keys: ['a-key-that-all-processes-share-0123456789'] },
    tools: [
      tool({ name: 'where', run: () => name }),
      tool({
        name: 'ask',
        async run(_, call) {
          const schema = {
            type: 'object',
            properties: { ok: { type: 'boolean' } },
            required: ['ok'],
          } as const
          await call.ask({ sure: form({ message: 'Sure?', schema }) })
          return `answered to ${name}`
        },
      }),
      tool({
        name: 'work',
        async run(_, call) {
          running.set(name, 'running')
          call.progress(1)
          await new Promise((resolve) => call.signal.addEventListener('abort', resolve))
          running.set(name, 'cancelled')
        },
      }),
    ],
  })
}

async function processes(use: (all: Record<'a' | 'b', Listening>) => Promise<void>): Promise<void> {
  const start = (node: string) =>
    listen(processOf(node), { port: 0, sessionIdPrefix: node, hosts: ['mcp.example.com'] })
  const all = { a: await start('a'), b: await start('b') }
  try {
    await use(all)
  } finally {
    await Promise.all([all.a.close(0), all.b.close(0)])
  }
}

const call = (name: string, more: object = {}) =>
  statelessRequest('tools/call', { name, arguments: {}, ...more })
const able = { _meta: { 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } } }

describe('several processes', () => {
  it('have session ids with a prefix of the process', async () => {
    await processes(async ({ a, b }) => {
      expect((await InitializedSession.open(a.url, '2025-11-25')).session).toMatch(/^a\./)
      expect((await InitializedSession.open(b.url, '2025-11-25')).session).toMatch(/^b\./)
    })
    await expect(listen(processOf('x'), { port: 0, sessionIdPrefix: 'a.b' })).rejects.toThrow(
      '"sessionIdPrefix"',
    )
  })

  it('with the same keys continue a question of another process', async () => {
    await processes(async ({ a, b }) => {
      const { json } = await send(a.url, call('ask', able))
      const { requestState } = (json as { result: { requestState: string } }).result
      const answers = {
        requestState,
        inputResponses: { sure: { action: 'accept', content: { ok: true } } },
      }
      expect((await send(b.url, call('ask', { ...able, ...answers }))).text).toContain(
        'answered to b',
      )
    })
  })
})

describe('nginx', () => {
  const available = spawnSync('nginx', ['-v']).status === 0

  async function proxied(
    use: (url: string, all: Record<'a' | 'b', Listening>) => Promise<void>,
  ): Promise<void> {
    const folder = mkdtempSync(join(tmpdir(), 'ccmcp-nginx-'))
    for (const name of ['body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']) mkdirSync(join(folder, name))
    await processes(async (all) => {
      const port = await freePort()
      const site = configuration
        .replaceAll('127.0.0.1:3001', `127.0.0.1:${all.a.port}`)
        .replaceAll('127.0.0.1:3002', `127.0.0.1:${all.b.port}`)
        .replace('listen 8080', `listen 127.0.0.1:${port}`)
      const paths = [
        'client_body_temp_path body',
        'proxy_temp_path proxy',
        'fastcgi_temp_path fastcgi',
        'uwsgi_temp_path uwsgi',
        'scgi_temp_path scgi',
      ]
      writeFileSync(
        join(folder, 'nginx.conf'),
        `daemon off; master_process off; pid nginx.pid; error_log stderr; events {}\nhttp { access_log off;\n${paths.map((path) => `${path};`).join('\n')}\n${site}\n}`,
      )
      const nginx = spawn('nginx', ['-p', folder, '-e', 'stderr', '-c', 'nginx.conf'], {
        stdio: ['ignore', 'ignore', 'pipe'],
      })
      const exited = new Promise((resolve) => nginx.once('exit', resolve))
      let log = ''
      nginx.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()))
      const url = `http://127.0.0.1:${port}/mcp`
      try {
        await until(() => send(url, viaName(call('where')))).catch(() => expect.unreachable(log))
        await use(url, all)
      } finally {
        nginx.kill('SIGTERM')
        await exited
        rmSync(folder, { recursive: true, force: true })
      }
    })
  }
  const viaName = (sending: Sending): Sending => ({
    ...sending,
    headers: { ...(sending.headers as object), host: 'mcp.example.com' },
  })

  it.skipIf(!available)('routes every request to the process of its session', async () => {
    await proxied(async (url) => {
      const places = new Set<string>()
      for (let i = 0; i < 10; i++) places.add((await send(url, viaName(call('where')))).text)
      expect(places.size).toBe(2)
      for (let i = 0; i < 4; i++) {
        const client = await InitializedSession.open(
          url,
          '2025-11-25',
          {},
          { host: 'mcp.example.com' },
        )
        const home = client.session[0]
        for (let j = 0; j < 3; j++)
          expect((await client.request('tools/call', { name: 'where' })).json).toMatchObject({
            result: { content: [{ text: home }] },
          })
        const own = await client.listen()
        await own.has('data:')
        own.disconnect()
        expect((await client.end()).status).toBe(204)
      }
    })
  })

  it.skipIf(!available)('does not buffer, and reports disconnected clients', async () => {
    await proxied(async (url) => {
      const stream = await open(url, viaName(call('work', { _meta: { progressToken: 1 } })))
      expect(await stream.message()).toMatchObject({ params: { progress: 1 } })
      stream.disconnect()
      await until(() => expect([...running.values()]).toContain('cancelled'))
    })
  })

  it('is configured for what is there', () => {
    expect(configuration).toContain('map $http_mcp_session_id')
  })
})

import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createContext, runInContext } from 'node:vm'
import { build } from 'esbuild'
import { rolldown } from 'rolldown'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type * as client from '../../src/client.js'
import { type Listening, listen } from '../../src/http.js'
import { createServer, form, resource, tool } from '../../src/index.js'
import type * as oauth from '../../src/oauth.js'
import type * as skillsEntry from '../../src/skills.js'
import { skills } from '../../src/skills.js'

/*
 * The client in a browser: bundled without any shim, and run without Node's globals. `npm run browser` does more of it in
 * a real browser.
 */

const dist = fileURLToPath(new URL('../../dist/', import.meta.url))
const contents = `export * from ${JSON.stringify(join(dist, 'client.js'))}
  export * from ${JSON.stringify(join(dist, 'oauth.js'))}
  export * from ${JSON.stringify(join(dist, 'skills.js'))}`

/** What browsers have, and the language does not. */
const WEB = [
  'AbortController',
  'AbortSignal',
  'Headers',
  'Request',
  'Response',
  'TextDecoder',
  'TextEncoder',
  'URL',
  'URLSearchParams',
  'atob',
  'btoa',
  'clearInterval',
  'clearTimeout',
  'crypto',
  'performance',
  'queueMicrotask',
  'setInterval',
  'setTimeout',
] as const

const bundlers: Record<string, () => Promise<string>> = {
  async esbuild() {
    const { outputFiles, warnings } = await build({
      stdin: { contents, resolveDir: dist },
      bundle: true,
      platform: 'browser',
      format: 'iife',
      globalName: 'ccmcp',
      write: false,
      logLevel: 'silent',
    })
    expect(warnings).toEqual([])
    return outputFiles[0]?.text ?? ''
  },
  async rolldown() {
    const warnings: string[] = []
    const bundle = await rolldown({
      input: 'entry',
      platform: 'browser',
      onLog: (_, { message }) => void warnings.push(message),
      plugins: [
        {
          name: 'entry',
          resolveId: (id) => (id === 'entry' ? id : undefined),
          load: (id) => (id === 'entry' ? contents : undefined),
        },
      ],
    })
    const { output } = await bundle.generate({
      format: 'iife',
      name: 'ccmcp',
      codeSplitting: false,
    })
    await bundle.close()
    expect(warnings).toEqual([])
    return output[0].code
  },
}

const server = createServer({
  name: 'for-browsers',
  version: '1.0.0',
  tools: [
    tool({ name: 'touch', run: () => (server.updated('sensor://room'), 'touched') }),
    tool({
      name: 'ask',
      run: (_, call) =>
        call.ask({ user: form({ message: 'Who?', schema: { type: 'object', properties: {} } }) }),
    }),
  ],
  resources: [resource({ uri: 'sensor://room', name: 'room', read: () => '21' })],
  extensions: [skills({ folder: new URL('../conformance/skills', import.meta.url) })],
})

describe.each(Object.entries(bundlers))('the client bundled by %s for a browser', (_, bundle) => {
  let ccmcp: typeof client & typeof oauth & typeof skillsEntry
  let listening: Listening
  let context: Record<string, unknown>

  beforeAll(async () => {
    listening = await listen(server, { port: 0, log: { write: () => true } })
    context = createContext({
      ...Object.fromEntries(WEB.map((name) => [name, globalThis[name]])),
      fetch: globalThis.fetch,
    })
    const code = await bundle()
    expect(code).not.toMatch(/(?:from|import\(|require\()\s*["'`]node:/)
    runInContext(code, context)
    ccmcp = runInContext('ccmcp', context) as typeof ccmcp // the bundle's exports
  })
  afterAll(() => listening.close())

  it.each(['2024-11-05', '2025-11-25', '2026-07-28'])('serves %s', async (revision) => {
    const elicit = () => ({ action: 'accept' as const, content: {} })
    const connected = await ccmcp.connect(ccmcp.http(listening.url), { revision, elicit })
    expect(connected.revision).toBe(revision)
    const changed = new Promise((resolve) => {
      void connected.subscribe('sensor://room', resolve).then(() => connected.callTool('touch'))
    })
    expect(await changed).toMatchObject({ uri: 'sensor://room' })
    if (revision !== '2024-11-05')
      expect((await connected.callTool('ask')).content).toEqual([
        { type: 'text', text: '{"user":{}}' },
      ])
    await connected.close()
  })

  it('has a server in the same page', async () => {
    const connected = await ccmcp.connect(ccmcp.memory(server))
    expect((await connected.callTool('touch')).content).toEqual([{ type: 'text', text: 'touched' }])
    await connected.close()
  })

  it('loads and verifies skills, and refuses folders', async () => {
    const extensions = [ccmcp.clientSkills()] as const
    const connected = await ccmcp.connect(ccmcp.http(listening.url), { extensions })
    const found = await connected.skills()
    expect(found.map(({ name }) => name)).toEqual(['refunds', 'git-workflow', 'pdf-processing'])
    const loaded = await found[2]?.load()
    expect((await loaded?.read('references/FORMS.md'))?.text).toBe('# Forms\n')
    await connected.close()
    expect(() => ccmcp.skills({ folder: '.' })).toThrow('folders need Node')
  })

  it('refuses stdio', () => {
    expect(() => ccmcp.stdio('node', ['server.js'])).toThrow(
      expect.objectContaining({
        code: 'NOT_SUPPORTED',
        message: expect.stringContaining('use http(url)') as string,
      }),
    )
  })

  it('sends initialize after a network error without a reason, and then says that it may be CORS', async () => {
    const methods: string[] = []
    Object.assign(context, {
      location: { origin: 'https://app.example.com' },
      fetch: (_: unknown, { body }: { body: string }) => {
        methods.push((JSON.parse(body) as { method: string }).method)
        // Of the context's realm, as a browser's error is.
        return runInContext("Promise.reject(new TypeError('Failed to fetch'))", context) as unknown
      },
    })
    const failed = ccmcp.connect(ccmcp.http('https://mcp.example.com'))
    await expect(failed).rejects.toThrow(
      'CORS may not allow requests from the origin https://app.example.com',
    )
    expect(methods).toEqual(['server/discover', 'initialize'])
  })

  it('fails at a redirect, whose target a browser hides', async () => {
    Object.assign(context, {
      fetch: () =>
        Promise.resolve({ type: 'opaqueredirect', status: 0, headers: new Headers(), body: null }),
    })
    await expect(ccmcp.connect(ccmcp.http('https://mcp.example.com'))).rejects.toThrow(
      'Connect to the final URL instead',
    )
  })

  it('has OAuth', async () => {
    const authorizer = ccmcp.oauth({ redirectUri: 'https://app.example.com/callback' })
    await expect(authorizer.finish('https://app.example.com/callback')).rejects.toMatchObject({
      name: 'AuthorizationError',
    })
  })
})

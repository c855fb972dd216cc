// Runs test/runtimes/browser/ in a real Chromium (on Linux): in a page and in a worker, as plain modules of dist/ and
// bundled for browsers. Installs playwright-core and Chromium from npm into .runtimes/; CHROMIUM names another executable.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createRequire } from 'node:module'
import { dirname, extname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { rolldown } from 'rolldown'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const folder = join(root, '.runtimes', 'browser')
const checks = join(root, 'test', 'runtimes', 'browser', 'checks.mjs')
const alias = {
  'ccmcp/client': join(root, 'dist', 'client.js'),
  'ccmcp/oauth': join(root, 'dist', 'oauth.js'),
}
const TOOLS = { 'playwright-core': '1.65.0', '@sparticuz/chromium': '147.0.0' }
/** Arguments for Lambda that weaken what is tested here, or one process that all pages share. */
const UNWANTED = /disable-web-security|single-process|site-isolation|IsolateOrigins/

async function launch() {
  const wanted = JSON.stringify({ private: true, dependencies: TOOLS })
  const manifest = join(folder, 'package.json')
  const mark = join(folder, '.installed')
  if (!existsSync(mark) || readFileSync(mark, 'utf8') !== wanted) {
    writeFileSync(manifest, wanted)
    const args = ['install', '--no-audit', '--no-fund', '--loglevel=error']
    const { status } = spawnSync('npm', args, { cwd: folder, stdio: ['ignore', 2, 2] })
    if (status !== 0) throw new Error('npm install failed')
    writeFileSync(mark, wanted)
  }
  const require = createRequire(manifest)
  const load = async (name) => await import(pathToFileURL(require.resolve(name)).href)
  const { chromium } = (await load('playwright-core')).default
  const { default: bundled } = await load('@sparticuz/chromium')
  return await chromium.launch({
    executablePath: process.env['CHROMIUM'] ?? (await bundled.executablePath()),
    args: bundled.args.filter((each) => !UNWANTED.test(each)),
  })
}

async function start(handler) {
  const server = createHttpServer(handler)
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = () =>
    new Promise((resolve) => {
      server.close(resolve)
      server.closeAllConnections()
    })
  return { server, close, url: `http://127.0.0.1:${server.address().port}` }
}

function pending() {
  let resolve
  const promise = new Promise((settle) => (resolve = settle))
  return { promise, resolve }
}

function definition({ createServer, form, resource, tool }) {
  let ended = pending()
  const server = createServer({
    name: 'for-browsers',
    version: '1.0.0',
    tools: [
      tool({
        name: 'count',
        input: { type: 'object', properties: { to: { type: 'integer' } }, required: ['to'] },
        async run({ to }, call) {
          for (let done = 1; done <= to; done++) {
            call.progress(done, to)
            await new Promise((resolve) => setTimeout(resolve, 5))
          }
          return 'counted'
        },
      }),
      tool({
        name: 'ask',
        async run(_, call) {
          const schema = { type: 'object', properties: { name: { type: 'string' } } }
          return (await call.ask({ user: form({ message: 'Who?', schema }) })).user.name
        },
      }),
      tool({
        name: 'wait',
        async run(_, call) {
          ended = pending()
          call.progress(1)
          await new Promise((resolve) => call.signal.addEventListener('abort', resolve))
          ended.resolve('cancelled')
        },
      }),
      tool({ name: 'cancelled', run: () => ended.promise }),
      tool({ name: 'touch', run: () => (server.updated('sensor://room'), 'touched') }),
    ],
    resources: [resource({ uri: 'sensor://room', name: 'room', read: () => '21' })],
  })
  return server
}

/** The servers that the checks connect to. */
async function startServers(origin) {
  const { listen, nodeHandler } = await import('../dist/http.js')
  const server = definition(await import('../dist/core.js'))
  const options = { origins: [origin], log: { write: () => true } }
  let listening = await listen(server, { ...options, port: 0, legacySse: true })
  const { port } = new URL(listening.url)
  const restart = async () => {
    await listening.close()
    listening = await listen(server, { ...options, port: Number(port), legacySse: true })
  }
  const handler = nodeHandler(server, options)
  const restricted = await start((request, response) => {
    if (request.method !== 'OPTIONS') return handler(request, response)
    response.writeHead(204, {
      'Access-Control-Allow-Origin': origin,
      'Access-Control-Allow-Methods': 'POST, GET, DELETE',
      'Access-Control-Allow-Headers': 'Content-Type, Mcp-Session-Id, Mcp-Protocol-Version',
    })
    response.end()
  })
  const withoutCors = await start((_, response) => response.end('{}'))
  const redirecting = await start((request, response) => {
    response.writeHead(request.method === 'OPTIONS' ? 204 : 307, {
      'Access-Control-Allow-Origin': origin,
      'Access-Control-Allow-Headers': '*',
      ...(request.method === 'OPTIONS' ? {} : { Location: listening.url }),
    })
    response.end()
  })
  const unused = await start(() => {})
  await unused.close()
  const protection = join(folder, 'protected.mjs')
  await build({
    entryPoints: [join(root, 'test', 'client-auth', 'protected.ts')],
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    outfile: protection,
    logLevel: 'error',
  })
  const { startProtected } = await import(pathToFileURL(protection).href)
  const secured = await startProtected({ origins: [origin] })
  return {
    restart,
    place: {
      page: origin,
      checks: `${origin}/checks.mjs`,
      url: listening.url,
      sse: new URL('/sse', listening.url).href,
      restricted: `${restricted.url}/mcp`,
      withoutCors: withoutCors.url,
      redirecting: redirecting.url,
      closed: unused.url,
      protectedUrl: secured.url,
    },
    async close() {
      const all = [listening, restricted, withoutCors, redirecting, secured]
      await Promise.all(all.map((each) => each.close()))
    },
  }
}

/** The checks as one file, by two bundlers with their settings for browsers. */
async function bundles() {
  const { outputFiles } = await build({
    entryPoints: [checks],
    alias,
    bundle: true,
    format: 'esm',
    platform: 'browser',
    write: false,
    logLevel: 'warning',
  })
  const bundle = await rolldown({ input: checks, platform: 'browser', resolve: { alias } })
  const { output } = await bundle.generate({ format: 'esm', codeSplitting: false })
  await bundle.close()
  return { esbuild: outputFiles[0].text, rolldown: output[0].code }
}

const TYPES = { '.js': 'text/javascript', '.mjs': 'text/javascript', '.html': 'text/html' }
const importMap = {
  imports: { 'ccmcp/client': '/dist/client.js', 'ccmcp/oauth': '/dist/oauth.js' },
}
const html = `<!doctype html><script type="importmap">${JSON.stringify(importMap)}</script>`
const worker = (name) =>
  `import { run } from '/${name}'; onmessage = async ({ data }) => postMessage(await run(data))`

mkdirSync(folder, { recursive: true })
const bundled = await bundles()
const files = {
  '/': [html, '.html'],
  '/oauth': [html, '.html'],
  '/checks.mjs': [readFileSync(checks, 'utf8'), '.mjs'],
  '/esbuild.js': [bundled.esbuild, '.js'],
  '/rolldown.js': [bundled.rolldown, '.js'],
  '/worker.js': [worker('esbuild.js'), '.js'],
}
let servers
const page = await start(async (request, response) => {
  const { pathname } = new URL(request.url, 'http://localhost')
  if (pathname === '/restart') {
    await servers.restart()
    return response.end('{}')
  }
  const module = /^\/dist\/[\w-]+\.js$/.test(pathname)
    ? [readFileSync(join(root, pathname), 'utf8'), extname(pathname)]
    : undefined
  const [body, type] = files[pathname] ?? module ?? []
  response.writeHead(body === undefined ? 404 : 200, {
    'Content-Type': TYPES[type] ?? 'text/plain',
  })
  response.end(body)
})
servers = await startServers(page.url)
const browser = await launch()
let failed = 0
const print = (where, lines) => {
  for (const line of lines) {
    if (!line.startsWith('ok')) failed++
    process.stdout.write(`${line} [${where}]\n`)
  }
}
try {
  process.stdout.write(`Chromium ${browser.version()}\n`)
  for (const name of ['checks.mjs', 'esbuild.js', 'rolldown.js']) {
    const tab = await browser.newPage()
    await tab.goto(page.url)
    const load = async ([file, place]) => await (await import(`/${file}`)).run(place)
    print(`page, ${name}`, await tab.evaluate(load, [name, servers.place]))
    await tab.close()
  }
  const tab = await browser.newPage()
  await tab.goto(page.url)
  const inWorker = (place) =>
    new Promise((resolve, reject) => {
      const started = new Worker('/worker.js', { type: 'module' })
      started.addEventListener('message', ({ data }) => resolve(data))
      started.addEventListener('error', ({ message }) => reject(new Error(message)))
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has no origin to name
      started.postMessage(place)
    })
  print('worker', await tab.evaluate(inWorker, servers.place))

  await tab.goto(`${page.url}/oauth`)
  const login = async (place) => await (await import(place.checks)).authorize(place)
  // The page may be left before it has answered.
  const left = tab.evaluate(login, servers.place).catch((error) => {
    if (!/navigat|destroyed/i.test(error.message)) throw error
  })
  await Promise.all([tab.waitForURL(/\/oauth\?.*state=/), left])
  const user = await tab.evaluate(login, servers.place)
  const again = await tab.evaluate(login, servers.place)
  const both = user === 'alice' && again === 'alice'
  print('page', [both ? 'ok     OAuth with a redirect' : `FAILED OAuth: ${user}, ${again}`])
} finally {
  await browser.close()
  await servers.close()
  await page.close()
}
process.stdout.write(failed === 0 ? 'passed\n' : `${failed} failed\n`)
process.exitCode = failed === 0 ? 0 : 1

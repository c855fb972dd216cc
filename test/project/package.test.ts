import { execFileSync, spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { afterAll, describe, expect, it } from 'vitest'
import { connect, stdio } from '../../src/client.js'
import { VERSION } from '../../src/version.js'

const root = fileURLToPath(new URL('../../', import.meta.url))
const dist = join(root, 'dist')
const facts = createRequire(import.meta.url)('../../package.json') as {
  version: string
  dependencies?: object
  exports: Record<string, unknown>
}

const environment = { ...process.env }
delete environment['NODE_EXTRA_CA_CERTS']

/** A file of dist/ and all files that it imports statically. */
function loaded(entry: string, seen = new Set<string>()): Set<string> {
  if (seen.has(entry)) return seen
  seen.add(entry)
  const text = readFileSync(join(dist, entry), 'utf8')
  for (const [, name] of text.matchAll(/(?:from|import)\s*["']\.\/([\w.-]+\.js)["']/g))
    if (name !== undefined) loaded(name, seen)
  return seen
}

/** Runs the built program with a client that initializes and calls a tool; returns what it wrote to stderr. */
function session(args: string[]): string {
  const messages = [
    {
      id: 1,
      method: 'initialize',
      params: {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo: { name: 'c', version: '1' },
      },
    },
    { id: 2, method: 'tools/call', params: { name: 'add', arguments: { a: 1, b: 2 } } },
  ]
  const input = messages
    .map((message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
    .join('')
  const { stdout, stderr, status } = spawnSync(process.execPath, [...args, join(dist, 'cli.js')], {
    input,
    encoding: 'utf8',
    env: environment,
  })
  expect(stdout).toContain('"text":"3"')
  expect(status).toBe(0)
  return stderr
}

/** Preloaded in Node: prints which files of dist/ are opened, as modules or otherwise. */
const SPY = `
  import { register } from 'node:module'
  import fs from 'node:fs'
  import { syncBuiltinESMExports } from 'node:module'
  const note = (name) => String(name).includes('/dist/') && fs.writeSync(2, 'loaded ' + name + '\\n')
  const { readFileSync, openSync } = fs
  fs.readFileSync = (name, ...rest) => (note(name), readFileSync(name, ...rest))
  fs.openSync = (name, ...rest) => (note(name), openSync(name, ...rest))
  syncBuiltinESMExports()
  const hook = \`import { writeSync } from 'node:fs'
    export const load = (url, context, next) => { if (url.includes('/dist/')) writeSync(2, 'loaded ' + url + '\\\\n'); return next(url, context) }\`
  register('data:text/javascript,' + encodeURIComponent(hook))`

describe('start-up', () => {
  it.each([
    ['the command line', 'cli.js'],
    ["a user's server", 'core.js'],
  ])('%s loads at most 180 KB in at most 3 files', (_, entry) => {
    const files = loaded(entry)
    const bytes = [...files].reduce((sum, file) => sum + statSync(join(dist, file)).size, 0)
    expect(files).toContain('core.js')
    expect(files.size).toBeLessThanOrEqual(3)
    expect(bytes).toBeLessThanOrEqual(180 * 1024)
    expect(bytes).toBeGreaterThan(50 * 1024)
  })

  it('loads exactly the statically imported files', () => {
    const stderr = session(['--import', `data:text/javascript,${encodeURIComponent(SPY)}`])
    const names = new Set(
      [...stderr.matchAll(/loaded \S+\/dist\/(\S+)/g)].map(([, name]) => String(name)),
    )
    expect([...names].toSorted()).toEqual([...loaded('cli.js')].toSorted())
  })

  it('loads at least 6 KB less without options', () => {
    const size = (entry: string) =>
      [...loaded(entry)].reduce((sum, file) => sum + statSync(join(dist, file)).size, 0)
    expect([...loaded('main.js')]).toEqual(expect.arrayContaining(['options.js', 'core.js']))
    expect(size('main.js') - size('cli.js')).toBeGreaterThan(6 * 1024)
  })

  // Imported under another spelling of its path, the entry would be a second module and start a second server.
  it.each(['core', 'http', 'extensions', 'journal'])(
    'loads no code of clients with %s.js, which servers use',
    (entry) => {
      expect([...loaded(`${entry}.js`)]).not.toContain('connecting.js')
      expect([...loaded('client.js')]).toContain('connecting.js')
    },
  )

  it('never imports the entry of the command line from another file', () => {
    const importers = readdirSync(dist)
      .filter((name) => name.endsWith('.js') && name !== 'cli.js')
      .filter((name) => loaded(name).has('cli.js'))
    expect(importers).toEqual([])
  })

  it('writes nothing into dist/', () => {
    const before = readdirSync(dist)
    session([])
    expect(readdirSync(dist)).toEqual(before)
  })
})

describe('an error in a definition', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ccmcp-error-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  const definition = `import { createServer, tool } from 'ccmcp'
    const add = tool({ name: 'add', input: { type: 'object', properties: { a: { type: 'nmber' } } }, run: () => 'x' })
    export const server = createServer({ name: 's', version: '1', tools: [add] })`

  it.each([
    ['node server.mjs', ['server.mjs']],
    ['ccmcp serve ./server.mjs', [join(dist, 'cli.js'), 'serve', './server.mjs']],
  ])('is readable with %s', (_, args) => {
    mkdirSync(join(folder, 'node_modules'), { recursive: true })
    if (!existsSync(join(folder, 'node_modules', 'ccmcp')))
      symlinkSync(root, join(folder, 'node_modules', 'ccmcp'), 'dir')
    writeFileSync(join(folder, 'server.mjs'), definition)
    const { stderr, status } = spawnSync(process.execPath, args, {
      cwd: folder,
      input: '',
      encoding: 'utf8',
      env: environment,
    })
    expect(status).toBe(1)
    expect(stderr).toMatch(
      /^TypeError: Tool "add": its input schema is not valid: properties\/a\/type: must be one of/m,
    )
    expect(stderr).toContain('server.mjs:3:27')
    expect(stderr.length).toBeLessThan(2000)
    // Function names show where it happened.
    if (args.length === 1) expect(stderr).toMatch(/^ {4}at createServer \(/m)
  })
})

describe('the package', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ccmcp-pack-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it('has the version of its code and no dependencies', () => {
    expect(VERSION).toBe(facts.version)
    expect(facts.dependencies).toBeUndefined()
  })

  it('installs and runs in an empty directory', () => {
    const npm = (args: string[], cwd: string) =>
      execFileSync('npm', [...args, '--no-audit', '--no-fund', '--loglevel=error'], {
        cwd,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'pipe'],
        env: environment,
      })
    const tarball =
      npm(['pack', '--pack-destination', folder, '--ignore-scripts'], root)
        .trim()
        .split('\n')
        .at(-1) ?? ''
    writeFileSync(join(folder, 'package.json'), '{"name":"empty","private":true,"type":"module"}')
    npm(['install', join(folder, tarball), '--offline'], folder)
    expect(
      execFileSync(join(folder, 'node_modules', '.bin', 'ccmcp'), ['--version'], {
        encoding: 'utf8',
      }).trim(),
    ).toBe(VERSION)
    expect(
      execFileSync(join(folder, 'node_modules', '.bin', 'ccmcp'), ['demo'], { encoding: 'utf8' }),
    ).toContain('\n  npx ccmcp check -- npx some-server')
    // A schema that requires the full validator, and every entry.
    const script = `
      import { createServer, tool } from 'ccmcp'
      import { playTranscript } from 'ccmcp/testing'
      import { serve } from 'ccmcp/stdio'
      if (typeof serve !== 'function') throw new Error('no serve')
      const t = tool({ name: 't', input: { type: 'object', oneOf: [{ required: ['a'] }, { required: ['b'] }] }, run: () => 'fine' })
      const call = (args) => '> ' + JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 't', arguments: args } })
      const open = '> ' + JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25' } })
      const { differences } = await playTranscript([open, '< *', call({ a: 1 }), '< {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"fine"}],"isError":false}}', call({}), '< {"jsonrpc":"2.0","id":2,"result":{"content":*,"isError":true}}'].join('\\n'), createServer({ name: 's', version: '1', tools: [t] }))
      console.log(JSON.stringify(differences))`
    writeFileSync(join(folder, 'use.js'), script)
    expect(
      execFileSync(process.execPath, ['use.js'], { cwd: folder, encoding: 'utf8' }).trim(),
    ).toBe('[]')
  })

  it('can be bundled with a server into one file', async () => {
    const place = mkdtempSync(join(folder, 'bundle-'))
    mkdirSync(join(place, 'node_modules'))
    symlinkSync(root, join(place, 'node_modules', 'ccmcp'))
    const server = `
      import { createServer, form, tool } from 'ccmcp'
      import { serveStdio } from 'ccmcp/stdio'
      const schema = { type: 'object', properties: { name: { type: 'string' } } }
      const ask = tool({ name: 'ask', run: (input, call) => call.ask({ name: form({ message: 'Who?', schema }) }) })
      const either = tool({ name: 'either', input: { type: 'object', oneOf: [{ required: ['a'] }, { required: ['b'] }] }, run: () => 'fine' })
      await serveStdio(createServer({ name: 'bundled', version: '1', tools: [ask, either] }))`
    writeFileSync(join(place, 'server.js'), server)
    const bundle = await rolldown({ input: join(place, 'server.js'), platform: 'node' })
    const file = join(folder, 'bundled.mjs')
    await bundle.write({ file, format: 'esm', codeSplitting: false })
    await bundle.close()
    rmSync(place, { recursive: true })
    await using client = await connect(stdio(process.execPath, [file]), {
      revision: '2025-11-25',
      elicit: () => ({ action: 'accept', content: { name: 'Ada' } }),
    })
    expect((await client.callTool('either', { a: 1 })).content).toEqual([
      { type: 'text', text: 'fine' },
    ])
    expect((await client.callTool('ask')).content).toEqual([
      { type: 'text', text: '{"name":{"name":"Ada"}}' },
    ])
  })

  it('has every export of package.json', async () => {
    for (const name of Object.keys(facts.exports)) {
      if (name === './package.json') continue
      const entry = (facts.exports[name] as { default: string; types: string }).default
      expect(Object.keys((await import(join(root, entry))) as object).length).toBeGreaterThan(0)
      expect(statSync(join(root, (facts.exports[name] as { types: string }).types)).isFile()).toBe(
        true,
      )
    }
  })

  it('can be required by CommonJS', () => {
    const names = Object.keys(facts.exports).map((name) => `ccmcp${name.slice(1)}`)
    const code = `for (const name of ${JSON.stringify(names)}) require(name)`
    const { stderr, status } = spawnSync(process.execPath, ['--input-type=commonjs', '-e', code], {
      cwd: root,
      encoding: 'utf8',
    })
    expect({ stderr, status }).toEqual({ stderr: '', status: 0 })
  })
})

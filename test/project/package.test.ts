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
import { minifySync } from 'rolldown/utils'
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

/** The bytes of the code in files of dist/: white space and the length of names do not count, as no start is slower by them. */
function codeBytes(files: Iterable<string>): number {
  const sizes = [...files].map((file) => {
    const { code, errors } = minifySync(file, readFileSync(join(dist, file), 'utf8'), {
      module: true,
      compress: true,
      mangle: { toplevel: false, keepNames: { function: true, class: true } },
      codegen: { removeWhitespace: true },
    })
    expect(errors).toEqual([])
    return Buffer.byteLength(code)
  })
  return sizes.reduce((sum, size) => sum + size, 0)
}

describe('start-up', () => {
  it.each([
    ['the command line', 'cli.js'],
    ["a user's server", 'core.js'],
  ])('%s loads at most 188 KB of code in at most 3 files', (_, entry) => {
    const files = loaded(entry)
    const bytes = codeBytes(files)
    expect(files).toContain('core.js')
    expect(files.size).toBeLessThanOrEqual(3)
    expect(bytes).toBeLessThanOrEqual(188 * 1024)
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
    const size = (entry: string) => codeBytes(loaded(entry))
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

describe('dist/', () => {
  const scripts = readdirSync(dist).filter((name) => name.endsWith('.js'))

  it('is readable: it keeps the names of functions and classes, and has a line for each statement', () => {
    const core = readFileSync(join(dist, 'core.js'), 'utf8')
    const source = readFileSync(join(root, 'src', 'server', 'uri.ts'), 'utf8')
    const names = [...source.matchAll(/^(?:export )?(?:function|class) (\w+)/gm)].map(([, name]) =>
      String(name),
    )
    expect(names.length).toBeGreaterThan(1)
    for (const name of names) expect(core).toMatch(new RegExp(`^(?:function |var )${name}\\b`, 'm'))
    for (const name of scripts) {
      const text = readFileSync(join(dist, name), 'utf8')
      expect(text.length / text.split('\n').length, name).toBeLessThan(200)
    }
  })

  it('is ASCII, refers to no source map, and has none', () => {
    for (const name of scripts) {
      const text = readFileSync(join(dist, name), 'latin1')
      // oxlint-disable-next-line no-control-regex -- all others
      expect(/[^\0-\x7f]/.exec(text), name).toBeNull()
      expect(text).not.toContain('sourceMappingURL')
    }
    expect(readdirSync(dist).filter((name) => name.endsWith('.map'))).toEqual([])
  })
})

describe('an error in a definition', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ccmcp-error-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  const definition = `import { createServer, tool } from 'ccmcp'
    const add = tool({ name: 'add', input: { type: 'object', properties: { a: { type: 'nmber' } } }, run: () => 'x' })
    export const server = createServer({ name: 's', version: '1', tools: [add] })`

  const run = (code: string, args = ['server.mjs']) => {
    mkdirSync(join(folder, 'node_modules'), { recursive: true })
    if (!existsSync(join(folder, 'node_modules', 'ccmcp')))
      symlinkSync(root, join(folder, 'node_modules', 'ccmcp'), 'dir')
    writeFileSync(join(folder, 'server.mjs'), code)
    return spawnSync(process.execPath, args, {
      cwd: folder,
      input: '',
      encoding: 'utf8',
      env: environment,
    })
  }

  it.each([
    ['node server.mjs', ['server.mjs']],
    ['ccmcp serve ./server.mjs', [join(dist, 'cli.js'), 'serve', './server.mjs']],
  ])('is readable with %s', (_, args) => {
    const { stderr, status } = run(definition, args)
    expect(status).toBe(1)
    expect(stderr).toMatch(
      /^TypeError: Tool "add": its input schema is not valid: properties\/a\/type: must be one of/m,
    )
    expect(stderr).toContain('server.mjs:3:27')
    expect(stderr.length).toBeLessThan(2000)
    // The stack begins at the user's call, and Node prints that line; not a line of dist/.
    expect(stderr).toMatch(
      /properties\/a\/type: [^\n]*\n {4}at (?:\S+ \()?file:\S+server\.mjs:3:27/,
    )
    expect(stderr).not.toContain('core.js')
    if (args.length === 1)
      expect(stderr).toContain("server = createServer({ name: 's', version: '1', tools: [add] })\n")
  })

  it.each([
    ['createServer', `createServer({ name: 's', version: '1', tolls: [] })`],
    ['listen', `await listen(server, { prt: 1 })`],
    ['listen with an invalid limit', `await listen(server, { port: 0, limits: { sessions: -1 } })`],
    ['httpHandler', `httpHandler(server, { pth: 1 })`],
    ['nodeHandler', `nodeHandler(server, { path: 1 })`],
    ['serve', `await serve(server, {})`],
    ['serveStdio', `await serveStdio(server, { framing: 'letters' })`],
  ])('of %s shows the line of the user', (_, line) => {
    const code = `import { createServer } from 'ccmcp'
      import { httpHandler, listen, nodeHandler } from 'ccmcp/http'
      import { serve, serveStdio } from 'ccmcp/stdio'
      const server = createServer({ name: 's', version: '1' })
      void [httpHandler, listen, nodeHandler, serve, serveStdio]
${line}`
    const { stderr, status } = run(code)
    expect(status).toBe(1)
    expect(stderr).toMatch(/server\.mjs:6\n/)
    expect(stderr).toContain(`\n${line}\n`)
    expect(stderr).toMatch(/TypeError.*\n {4}at (?:\S+ \()?file:\S+server\.mjs:6:\d+/)
    expect(stderr).not.toContain('/dist/')
  })

  it("keeps the stack of an error of the user's own code", () => {
    const { stderr } = run(`import { createServer } from 'ccmcp'
      const tool = { get name() { return undefined.x } }
      createServer({ name: 's', version: '1', tools: [tool] })`)
    expect(stderr).toMatch(/TypeError.*\n {4}at get name (?:\[as name\] )?\(file:\S+server\.mjs:2:/)
    expect(stderr).toContain('dist/core.js')
  })
})

describe('the package', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ccmcp-pack-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it('has the version of its code and no dependencies', () => {
    expect(VERSION).toBe(facts.version)
    expect(facts.dependencies).toBeUndefined()
  })

  it('has at most 3.5 MB, and what a user needs', () => {
    const output = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      env: environment,
    })
    const [packed] = JSON.parse(output) as { unpackedSize: number; files: { path: string }[] }[]
    expect(packed?.unpackedSize).toBeLessThanOrEqual(3_500_000)
    const paths = packed?.files.map(({ path }) => path) ?? []
    expect(paths).toEqual(expect.arrayContaining(['dist/core.js', 'README.md', 'docs/tools.md']))
    expect(paths.filter((path) => /\.map$|\.webp$|\.built$|seed-doc/.test(path))).toEqual([])
  })

  it('installs and runs in an empty directory', () => {
    const npm = (args: string[], cwd: string) =>
      execFileSync('npm', [...args, '--no-audit', '--no-fund', '--loglevel=error'], {
        cwd,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'pipe'],
        env: environment,
      })
    const tarball = execFileSync(process.execPath, [join(root, 'scripts', 'pack.mjs'), folder], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      env: environment,
    }).trim()
    writeFileSync(join(folder, 'package.json'), '{"name":"empty","private":true,"type":"module"}')
    npm(['install', tarball, '--offline'], folder)
    const installed = readFileSync(join(folder, 'node_modules', 'ccmcp', 'package.json'), 'utf8')
    const { version, ...others } = JSON.parse(installed) as Record<string, unknown>
    expect(version).toBe(VERSION)
    // npm would warn of "prepare", as if it had still to run.
    expect(Object.keys(others)).toEqual(expect.arrayContaining(['bin', 'engines', 'exports']))
    expect(Object.keys(others)).not.toContain('scripts')
    expect(Object.keys(others)).not.toContain('devDependencies')
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

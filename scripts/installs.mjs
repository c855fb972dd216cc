// Runs the commands of docs/installing.md, each in an empty folder, and what is installed then: an import, a server with
// zod over stdio, and the command line. `--here` uses the npm of this machine only; otherwise every package manager is
// installed from npm into .runtimes/. `--only yarn` runs the commands that begin so. What is cloned is the last commit.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, delimiter, join } from 'node:path'
import { parseArgs } from 'node:util'
import { root } from './fresh.mjs'

const page = readFileSync(join(root, 'docs', 'installing.md'), 'utf8')
const { version, devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const { values } = parseArgs({ options: { here: { type: 'boolean' }, only: { type: 'string' } } })
const tools = join(root, '.runtimes', 'installs')

const NPM_TARBALL = `npm install ./ccmcp-${version}.tgz`
const PNPM_TARBALL = `pnpm add ./ccmcp-${version}.tgz`
const YARN_TARBALL = `yarn add ./ccmcp-${version}.tgz`
const NPM_GIT = 'npm install git+file:///path/to/ccmcp'
const NPM_12_GIT = 'npm install --allow-git=root git+file:///path/to/ccmcp'
const PNPM_GIT = 'pnpm add git+file:///path/to/ccmcp#COMMIT'
const YARN_GIT = 'yarn add ccmcp@git+https://HOST/ccmcp.git'
const npm = { add: 'npm install', run: 'npx ccmcp' }
const pnpm = { add: 'pnpm add', run: 'pnpm exec ccmcp' }
const yarn = { add: 'yarn add', run: 'yarn ccmcp' }
const LINKER = { '.yarnrc.yml': 'nodeLinker: node-modules\nenableTelemetry: false\n' }
const ALLOWED = {
  'pnpm-workspace.yaml': "allowBuilds:\n  'ccmcp@git+file:///path/to/ccmcp#COMMIT': true\n",
}
const APPROVED = {
  '.yarnrc.yml': `${LINKER['.yarnrc.yml']}unsafeHttpWhitelist: [127.0.0.1]
approvedGitRepositories:
  - 'https://HOST/**'
`,
}
/** npm 11 and 12 name the script "prepare" of a dependency from git, which has run. */
const NOTICE = /^npm warn install-scripts.*\n/gm

/** `packages` are from npm: those of the package manager, and the Node on which it runs. */
const ALL = [
  { ...npm, packages: ['npm@10'], line: NPM_TARBALL },
  { ...npm, packages: ['npm@11'], line: NPM_TARBALL },
  { ...npm, packages: ['npm@12', 'node@22'], line: NPM_TARBALL },
  { ...pnpm, packages: ['pnpm@10'], line: PNPM_TARBALL },
  { ...pnpm, packages: ['pnpm@12'], line: PNPM_TARBALL },
  { ...yarn, packages: ['yarn@1'], line: YARN_TARBALL },
  { ...yarn, packages: ['@yarnpkg/cli-dist@4'], line: YARN_TARBALL, files: LINKER },
  { ...npm, packages: ['npm@10'], line: NPM_GIT },
  { ...npm, packages: ['npm@11'], line: NPM_GIT },
  { ...npm, packages: ['npm@12', 'node@22'], line: NPM_12_GIT },
  { ...pnpm, packages: ['pnpm@12'], line: PNPM_GIT, files: ALLOWED },
  { ...yarn, packages: ['@yarnpkg/cli-dist@4'], line: YARN_GIT, files: APPROVED },
]
const HERE = [
  { ...npm, packages: [], line: NPM_TARBALL },
  { ...npm, packages: [], line: NPM_GIT },
]

const SERVER = `import { createServer, tool } from 'ccmcp'
import { serveStdio } from 'ccmcp/stdio'
import { z } from 'zod'

const add = tool({
  name: 'add',
  input: z.object({ a: z.number(), b: z.number() }),
  output: z.object({ sum: z.number() }),
  run: ({ a, b }) => ({ sum: a + b }),
})

await serveStdio(createServer({ name: 'calculator', version: '1.0.0', tools: [add] }))
`
const REQUESTS = [
  { id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {} } },
  { method: 'notifications/initialized' },
  { id: 2, method: 'tools/call', params: { name: 'add', arguments: { a: 2, b: 40 } } },
]

/** The environment without what npm says to its scripts, and without the settings of this user. */
function environment(folder, path = []) {
  const entries = Object.entries(process.env).filter(([name]) => !/^npm_|^INIT_CWD$/i.test(name))
  const settings = join(folder, '.npmrc')
  return {
    ...Object.fromEntries(entries),
    PATH: [...path, process.env.PATH].join(delimiter),
    npm_config_userconfig: settings,
    CI: '1',
  }
}

function run(command, { cwd, env, input }) {
  const options = { cwd, env, input, encoding: 'utf8', shell: true, timeout: 15 * 60_000 }
  const { status, signal, stdout, stderr } = spawnSync(command, options)
  if (status !== 0)
    throw new Error(`"${command}" ended with ${status ?? signal}:\n${stdout}\n${stderr}`)
  return { stdout, output: `${stdout}\n${stderr}` }
}

/** Installs a package manager, or Node; returns the folder of its programs. */
function provide(spec) {
  const folder = join(tools, spec.replaceAll(/[@/]/g, '_'))
  mkdirSync(folder, { recursive: true })
  // The programs of pnpm and of Node are put in place by a script.
  const manifest = { private: true, allowScripts: { pnpm: true, node: true } }
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
  run(`npm install --no-audit --no-fund ${spec}`, { cwd: folder, env: environment(folder) })
  return join(folder, 'node_modules', '.bin')
}

function attempt(
  { packages, line, files = {}, add, run: program },
  { tarball, clone, commit, host },
) {
  if (!page.includes(`\`${line}\``)) throw new Error(`docs/installing.md does not have "${line}"`)
  const place = (text) =>
    text
      .replaceAll('/path/to/ccmcp', clone)
      .replaceAll('COMMIT', commit)
      .replaceAll('https://HOST', host)
  const folder = mkdtempSync(join(tmpdir(), 'ccmcp-install-'))
  try {
    const env = environment(folder, packages.map(provide))
    writeFileSync(join(folder, 'package.json'), '{"name":"app","private":true,"type":"module"}')
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), place(text))
    cpSync(tarball, join(folder, basename(tarball)))
    const { output } = run(place(line), { cwd: folder, env })
    const warning = /^.*\b(?:warn|EBADENGINE|deprecated)\b.*$/im.exec(
      line.includes('git+') ? output.replaceAll(NOTICE, '') : output,
    )
    // Yarn 1 says so of every folder without a license.
    if (warning !== null && !/No license field/.test(warning[0]))
      throw new Error(`"${line}" warns: ${warning[0]}`)
    run(`${add} zod@${devDependencies.zod}`, { cwd: folder, env })
    const printed = run(`${program} --version`, { cwd: folder, env }).stdout
    if (!printed.includes(version)) throw new Error(`"${program} --version" prints ${printed}`)
    writeFileSync(join(folder, 'server.js'), SERVER)
    const input = REQUESTS.map((each) => `${JSON.stringify({ jsonrpc: '2.0', ...each })}\n`).join(
      '',
    )
    const { stdout } = run('node server.js', { cwd: folder, env, input })
    if (!stdout.includes('"structuredContent":{"sum":42}'))
      throw new Error(`the server answers ${stdout}`)
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** Serves a folder over HTTP from a process of its own, as this one waits for the package managers; resolves to its URL. */
async function serveFolder(folder) {
  const code = `
    const { createReadStream } = require('node:fs')
    const server = require('node:http').createServer((request, response) => {
      const file = createReadStream('.' + new URL(request.url, 'http://x').pathname)
      file.on('error', () => response.writeHead(404).end()).on('open', () => file.pipe(response))
    })
    server.listen(0, '127.0.0.1', () => console.log('http://127.0.0.1:' + server.address().port))`
  const child = spawn(process.execPath, ['-e', code], { cwd: folder, stdio: ['ignore', 'pipe', 2] })
  const [url] = await once(child.stdout, 'data')
  return { child, url: String(url).trim() }
}

const folder = mkdtempSync(join(tmpdir(), 'ccmcp-installs-'))
let served
let failures = 0
try {
  const env = environment(folder)
  const pack = `node ${join(root, 'scripts', 'pack.mjs')} ${folder}`
  const tarball = run(pack, { cwd: root, env }).stdout.trim()
  const clone = join(folder, 'ccmcp')
  run(`git clone --quiet ${root} ${clone}`, { cwd: folder, env })
  const commit = run('git rev-parse HEAD', { cwd: clone, env }).stdout.trim()
  const bare = join(folder, 'bare', 'ccmcp.git')
  run(`git clone --quiet --bare ${root} ${bare}`, { cwd: folder, env })
  run('git update-server-info', { cwd: bare, env })
  served = await serveFolder(join(folder, 'bare'))
  const host = served.url
  const { here, only = '' } = values
  const chosen = (here ? HERE : ALL).filter(({ line }) => line.startsWith(only))
  if (chosen.length === 0) throw new Error(`no command begins with "${only}"`)
  for (const each of chosen) {
    const name = `${each.packages.join(' on ') || 'npm'}: ${each.line}`
    const started = performance.now()
    try {
      attempt(each, { tarball, clone, commit, host })
      console.log(`ok ${name} (${((performance.now() - started) / 1000).toFixed(0)} s)`)
    } catch (error) {
      failures++
      console.log(`FAILED ${name}\n${error.message}`)
    }
  }
} finally {
  served?.child.kill()
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
}
process.exitCode = failures === 0 ? 0 : 1

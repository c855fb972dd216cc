import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  utimesSync,
  watch,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ENTRY_POINTS } from '../../scripts/layers.mjs'
import { Child, type ChildOptions, ROOT, killAll, ping, pong, within } from './child.js'

// A checkout of its own, without dist/. Its node_modules holds links to the real
// packages, and the only npm on the path is ours: the real folder is never touched.
// Its tsc writes no declarations, its sources are small and have no page, so that it is built fast.
let root = ''
let env: Record<string, string> = {}
/** A command line that answers pings, on the descriptors that the launcher gives it. */
const PINGED = `
  import { createReadStream, writeSync } from 'node:fs'
  import { createInterface } from 'node:readline'
  createInterface({ input: createReadStream('', { fd: 3 }) }).on('line', (line) =>
    writeSync(4, JSON.stringify({ jsonrpc: '2.0', id: JSON.parse(line).id, result: {} }) + '\\n'))
`
const marker = () => join(root, 'node_modules', '.ccmcp-installed')
const lock = () => join(root, '.build-lock')
const tsc = () => join(root, 'node_modules', 'typescript', 'bin', 'tsc')

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'ccmcp-setup-'))
  chmodSync(root, 0o755)
  for (const name of [
    'package.json',
    'package-lock.json',
    'ccmcp',
    'scripts',
    'tsconfig.json',
    'tsconfig.build.json',
  ])
    cpSync(join(ROOT, name), join(root, name), { recursive: true })
  mkdirSync(join(root, 'src'))
  for (const name of ENTRY_POINTS)
    writeFileSync(join(root, 'src', `${name}.ts`), name === 'cli' ? PINGED : 'export {}')
  writeFileSync(join(root, 'scripts', 'build-page.mjs'), 'export const buildPage = () => ""')
  const packages = join(ROOT, 'node_modules')
  mkdirSync(join(root, 'node_modules'))
  for (const name of readdirSync(packages))
    if (!name.startsWith('.') && name !== 'typescript')
      symlinkSync(join(packages, name), join(root, 'node_modules', name))
  mkdirSync(dirname(tsc()), { recursive: true })
  writeFileSync(join(root, 'node_modules', 'typescript', 'package.json'), '{}')
  writeFileSync(tsc(), '')
  const past = new Date(Date.now() - 60_000)
  utimesSync(join(root, 'package-lock.json'), past, past)
  writeFileSync(marker(), '')
  const bin = join(root, 'bin')
  mkdirSync(bin)
  writeFileSync(
    join(bin, 'npm'),
    '#!/bin/sh\necho "npm $*" >>npm.log\necho "npm on stdout"\nwhile [ -e wait ]; do sleep 0.05; done\nexit "${NPM_CODE-0}"\n',
    { mode: 0o755 },
  )
  env = { PATH: `${bin}:${process.env['PATH']}` }
})
afterEach(async () => {
  await killAll()
  rmSync(root, { recursive: true, force: true, maxRetries: 5 })
})

const launch = (options: ChildOptions = {}) =>
  new Child(join(root, 'ccmcp'), [], { ...options, env: { ...env, ...options.env }, group: true })

async function answersPing(server: Child): Promise<void> {
  server.end(ping(1))
  await server.closed()
  expect(server.stdout.toString()).toBe(`${pong(1)}\n`)
  expect(server.code).toBe(0)
}

/** The arguments that npm was called with. */
const npm = () =>
  existsSync(join(root, 'npm.log')) ? readFileSync(join(root, 'npm.log'), 'utf8') : ''
/** Its stderr without the notices that it waits, which occur on slow machines. */
const told = ({ stderr }: Child) =>
  stderr.replaceAll(/^ccmcp: waiting for process \d+, which is building \(.*\)\n/gm, '')
/** The remaining files besides dist/. */
const litter = () =>
  readdirSync(root).filter((name) => name.startsWith('.build-lock') || name.startsWith('dist.'))

describe('./ccmcp in a fresh checkout', () => {
  it('builds and serves; the second time it only serves', async () => {
    for (const name of ['src', 'scripts'])
      cpSync(join(ROOT, name), join(root, name), { recursive: true })
    const first = launch()
    await answersPing(first)
    expect(told(first)).toBe('ccmcp: building…\n')
    const second = launch()
    await answersPing(second)
    expect(told(second)).toBe('')
    expect(npm()).toBe('')
    expect(litter()).toEqual([])
  })

  it('builds once if two are started at the same time, and both serve', async () => {
    const servers = [launch(), launch()]
    await Promise.all(servers.map(answersPing))
    expect(servers.map(told).join('')).toBe('ccmcp: building…\n')
    expect(npm()).toBe('')
    expect(litter()).toEqual([])
  })

  it('installs once if two are started at the same time, and keeps stdout clean', async () => {
    rmSync(marker())
    const servers = [launch(), launch()]
    await Promise.all(servers.map(answersPing))
    expect(servers.map(told).join('')).toBe(
      'ccmcp: installing packages…\nnpm on stdout\nccmcp: building…\n',
    )
    expect(npm()).toBe('npm ci --include=dev --no-audit --no-fund\n')
    expect(existsSync(marker())).toBe(true)
    expect(litter()).toEqual([])
  })

  it('reports a failed install and leaves no lock', async () => {
    rmSync(marker())
    const server = launch({ env: { NPM_CODE: '7' } })
    await server.closed()
    expect(server.stderr).toBe(
      'ccmcp: installing packages…\nnpm on stdout\nccmcp: setup failed: "npm ci --include=dev --no-audit --no-fund" failed\n',
    )
    expect(server.stdout.toString()).toBe('')
    expect(server.code).toBe(1)
    expect(litter()).toEqual([])
  })

  it('reports a failed build and leaves no lock', async () => {
    writeFileSync(join(root, 'src', 'stdio.ts'), 'this is no program')
    const server = launch()
    await server.closed()
    expect(server.stderr).toContain(
      `ccmcp: setup failed: "${process.execPath} ${join(root, 'scripts', 'build.mjs')}" failed\n`,
    )
    expect(server.stdout.toString()).toBe('')
    expect(server.code).toBe(1)
    expect(litter()).toEqual([])
    expect(existsSync(join(root, 'dist'))).toBe(false)
  })
})

/** Resolves after several attempts to take the lock: each makes and removes a file beside it; more than taking it does. */
function several(): Promise<void> {
  return new Promise((resolve) => {
    let seen = 0
    const watcher = watch(root, (_, name) => {
      if (name?.startsWith('.build-lock.') !== true || ++seen < 25) return
      watcher.close()
      resolve()
    })
  })
}

describe('the build lock', () => {
  it('of an exited process does not block', async () => {
    const { pid } = spawnSync(process.execPath, ['--version'])
    writeFileSync(lock(), String(pid))
    const server = launch()
    await answersPing(server)
    expect(told(server)).toBe('ccmcp: building…\n')
    expect(litter()).toEqual([])
  })

  it('of an exited process is taken over by one of two', async () => {
    const { pid } = spawnSync(process.execPath, ['--version'])
    writeFileSync(lock(), String(pid))
    const servers = [launch(), launch()]
    await Promise.all(servers.map(answersPing))
    expect(servers.map(told).join('')).toBe('ccmcp: building…\n')
    expect(litter()).toEqual([])
  })

  it('of a process that was killed while building does not block', async () => {
    // Otherwise the build may be complete before the process is killed.
    writeFileSync(tsc(), 'setInterval(() => {}, 60_000)')
    const killed = launch()
    await killed.said('building')
    await killed.kill()
    writeFileSync(tsc(), '')
    expect(existsSync(lock())).toBe(true)
    const server = launch()
    await answersPing(server)
    expect(told(server)).toBe('ccmcp: building…\n')
    expect(existsSync(lock())).toBe(false)
  })

  it('of a killed process is held by the npm that it started', async () => {
    rmSync(marker())
    writeFileSync(join(root, 'wait'), '')
    const killed = launch()
    await killed.said('npm on stdout')
    // npm may print before its process id is in the lock.
    await expect.poll(() => readFileSync(lock(), 'utf8')).toMatch(/^\d+ \d+$/)
    process.kill(Number(readFileSync(lock(), 'utf8').split(' ')[0]), 'SIGKILL')
    await killed.exited()
    const attempts = several()
    const server = launch()
    await within(attempts, () => 'attempts to take the lock')
    expect(npm()).toBe('npm ci --include=dev --no-audit --no-fund\n')
    rmSync(join(root, 'wait'))
    await answersPing(server)
    expect(npm()).toBe('npm ci --include=dev --no-audit --no-fund\n'.repeat(2))
    expect(litter()).toEqual([])
  })

  it('of a running process is waited for', async () => {
    const owner = new Child(process.execPath, [
      '--eval',
      'setInterval(() => {}, 60_000); console.log("up")',
    ])
    await owner.line(0)
    writeFileSync(lock(), String(owner.pid))
    const attempts = several()
    const server = launch()
    await within(attempts, () => 'attempts to take the lock')
    expect(told(server)).toBe('')
    await owner.kill()
    await answersPing(server)
    expect(told(server)).toBe('ccmcp: building…\n')
  })

  it.each([[''], ['no number']])('without a process id (%j) does not block', async (content) => {
    writeFileSync(lock(), content)
    const server = launch()
    server.end(ping(1))
    await server.until(() => server.lines.length === 1, 'the answer')
    expect(server.lines).toEqual([pong(1)])
  })
})

describe('a read-only checkout', () => {
  it('is reported with advice', async () => {
    // root may write anywhere, so this runs as another user.
    const isRoot = process.getuid?.() === 0
    const stays = isRoot ? 0o755 : 0o555
    chmodSync(root, stays)
    const server = launch(isRoot ? { uid: 65534 } : {})
    await server.closed()
    chmodSync(root, 0o755)
    expect(server.stderr).toBe(
      `ccmcp: setup failed: this directory is not writable; run "npm run setup" in ${root} as a user with write permission, then start again\n`,
    )
    expect(server.stdout.toString()).toBe('')
    expect(server.code).toBe(1)
    expect(litter()).toEqual([])
  })
})

describe('the script "prepare", as npm runs it', () => {
  const prepare = () =>
    spawnSync(process.execPath, [join(root, 'scripts', 'prepare.mjs')], {
      cwd: root,
      env,
      encoding: 'utf8',
    })
  const built = () => join(root, 'dist', '.built')

  it('builds without a word and without npm, and leaves a fresh build alone', () => {
    expect(prepare()).toMatchObject({ status: 0, stdout: '', stderr: '' })
    expect(existsSync(join(root, 'dist', 'core.js'))).toBe(true)
    const before = readFileSync(built(), 'utf8')
    expect(prepare()).toMatchObject({ status: 0, stdout: '', stderr: '' })
    expect(readFileSync(built(), 'utf8')).toBe(before)
    expect(npm()).toBe('')
  })

  it('does not wait for the lock of a setup that has started npm', () => {
    writeFileSync(lock(), String(process.pid))
    expect(prepare()).toMatchObject({ status: 0, stderr: '' })
    expect(readFileSync(lock(), 'utf8')).toBe(String(process.pid))
  })

  it('fails if the packages for the build are missing, and says what to do', () => {
    rmSync(join(root, 'node_modules'), { recursive: true })
    const { status, stderr } = prepare()
    expect(status).toBe(1)
    expect(stderr).toBe(
      `ccmcp cannot be built: its development packages are not installed. Run "npm run setup" in ${root}, or install the tarball of a release, which is built\n`,
    )
  })

  it('fails with the reason if the build fails', () => {
    writeFileSync(join(root, 'src', 'index.ts'), 'export {')
    const { status, stderr } = prepare()
    expect(status).toBe(1)
    expect(stderr).toContain('ccmcp cannot be built: ')
    expect(stderr).toContain('index.ts')
    expect(existsSync(join(root, 'dist'))).toBe(false)
  })
})

describe('setup', () => {
  it('does not install again after "npm ci"', () => {
    rmSync(marker())
    writeFileSync(join(root, 'node_modules', '.package-lock.json'), '{}')
    for (const name of ['rolldown', 'esbuild'])
      expect(existsSync(join(root, 'node_modules', name))).toBe(true)
    const { status, stderr } = spawnSync(process.execPath, [join(root, 'scripts', 'setup.mjs')], {
      env,
      encoding: 'utf8',
    })
    expect({ status, stderr }).toEqual({ status: 0, stderr: 'ccmcp: building…\n' })
    expect(npm()).toBe('')
  })
})

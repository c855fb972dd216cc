import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { afterEveryTest } from '../after-every-test.js'
import { SchemaValidator } from '../official/schema-validator.js'

/** Generous, for busy machines. Never reached if the test passes. */
const DEADLINE = 60_000

export const ROOT = fileURLToPath(new URL('../../', import.meta.url))
export const CCMCP = `${ROOT}ccmcp`
export const TOOLS = fileURLToPath(new URL('servers/tools.mjs', import.meta.url))
export const PARENT = fileURLToPath(new URL('servers/parent.mjs', import.meta.url))

/** Variables for a program of Node whose timers of that many milliseconds or more fire at SIGUSR2 only, not by the clock. */
export const heldTimers = (from: number) => ({
  NODE_OPTIONS: `--import=${new URL('servers/held-timers.mjs', import.meta.url).href}`,
  TIMERS: String(from),
})

/** The launcher line that moves the messages to separate file descriptors. */
export const ISOLATED = 'CCMCP_WIRE=3,4 exec node "$0" 3<&0 4>&1 </dev/null 1>&2'

export interface ChildOptions {
  env?: Record<string, string>
  cwd?: string
  /** Whether stdout is read from the start (default); otherwise after `read()`. */
  reading?: boolean
  uid?: number
  /** In its own process group, which is killed as a whole. */
  group?: boolean
}

const started = new Set<Child>()

/** Ends all processes of a test. Runs after each test, or earlier if a test's own clean-up needs it. */
export async function killAll(): Promise<void> {
  const children = [...started]
  started.clear()
  await Promise.all(children.map((child) => child.kill()))
}
afterEveryTest(killAll)

/** The violations of the official schemas in the exchanged lines. */
const violations: string[] = []
afterEveryTest(() => expect(violations.splice(0)).toEqual([]))

/** The environment without variables that slow a child down or configure it. */
function environment(more: Record<string, string>): NodeJS.ProcessEnv {
  const { NODE_EXTRA_CA_CERTS, NODE_OPTIONS, CCMCP_WIRE, ...rest } = process.env
  void [NODE_EXTRA_CA_CERTS, NODE_OPTIONS, CCMCP_WIRE]
  return { ...rest, ...more }
}

/** A process under test: its output so far, and promises of further output. */
export class Child {
  readonly #process: ChildProcess
  readonly #group: boolean
  readonly #watchers = new Set<() => void>()
  readonly #validator = new SchemaValidator((violation) => violations.push(violation))
  #pieces: Buffer[] = []
  #unfinished = ''
  #decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  #exited = false
  #closed = false
  /** The complete lines of stdout. */
  readonly lines: string[] = []
  stderr = ''
  code: number | null = null
  signal: NodeJS.Signals | null = null

  constructor(
    command: string,
    args: readonly string[] = [],
    { env = {}, cwd, reading = true, uid, group = false }: ChildOptions = {},
  ) {
    const options: SpawnOptions = { env: environment(env), stdio: 'pipe', detached: group }
    if (cwd !== undefined) options.cwd = cwd
    if (uid !== undefined) Object.assign(options, { uid, gid: uid })
    this.#process = spawn(command, args, options)
    this.#group = group
    started.add(this)
    const { stdin, stdout, stderr } = this.#process
    stdin?.on('error', () => {}) // it may be gone before everything is written
    stdout?.on('error', () => {})
    stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text
      this.#look()
    })
    this.#process.on('error', (error) => {
      this.stderr += String(error)
      this.#exited = this.#closed = true
      this.#look()
    })
    this.#process.on('exit', (code, signal) => {
      this.code = code
      this.signal = signal
      this.#exited = true
      this.#look()
    })
    this.#process.on('close', () => {
      this.#closed = true
      this.#look()
    })
    if (reading) this.read()
  }

  get pid(): number {
    return this.#process.pid ?? 0
  }

  /** All of stdout. */
  get stdout(): Buffer {
    return Buffer.concat(this.#pieces)
  }

  /** Begins to read stdout; with a listener, chunks go to it and are not stored. */
  read(listener?: (chunk: Buffer) => void): void {
    this.#process.stdout?.on('data', (chunk: Buffer) => {
      if (listener === undefined) this.#gather(chunk)
      else listener(chunk)
      this.#look()
    })
  }

  /** Closes this side of the child's stdout. */
  closeOutput(): Promise<void> {
    const { stdout } = this.#process
    return new Promise((resolve) => {
      stdout?.once('close', resolve)
      stdout?.destroy()
    })
  }

  /** Sends messages in lines, all in one write. */
  send(...messages: readonly string[]): void {
    for (const message of messages) this.#validator.add('sent', message)
    this.write(messages.map((message) => `${message}\n`).join(''))
  }

  write(bytes: string | Uint8Array): void {
    this.#process.stdin?.write(bytes)
  }

  /** Writes and waits until the bytes are flushed. */
  push(bytes: string | Uint8Array): Promise<void> {
    const gone = new Promise<void>((resolve) => this.#process.stdin?.write(bytes, () => resolve()))
    return within(gone, () => `the child to take its input; ${this.#state()}`)
  }

  /** Closes the child's stdin after these messages. */
  end(...messages: readonly string[]): void {
    for (const message of messages) this.#validator.add('sent', message)
    this.#process.stdin?.end(messages.map((message) => `${message}\n`).join(''))
  }

  give(signal: NodeJS.Signals): void {
    this.#process.kill(signal)
  }

  /** The line with this index. */
  async line(index: number): Promise<string> {
    await this.until(() => this.lines.length > index, `line ${index}`)
    return this.lines[index] ?? ''
  }

  /** Waits until stderr contains the text. */
  said(text: string): Promise<void> {
    return this.until(() => this.stderr.includes(text), `${JSON.stringify(text)} on stderr`)
  }

  /** Waits until the process has exited. Its output may be unread. */
  exited(): Promise<void> {
    return this.until(() => this.#exited, 'its exit', true)
  }

  /** Waits until the process has exited and its stdout and stderr are closed, also by its children. */
  closed(): Promise<void> {
    return this.until(() => this.#closed, 'its end', true)
  }

  /** Waits until the condition is true; checked on every event. */
  until(condition: () => boolean, what: string, beyondEnd = false): Promise<void> {
    let watcher = () => {}
    const met = new Promise<void>((resolve, reject) => {
      watcher = () => {
        if (condition()) resolve()
        else if (this.#closed && !beyondEnd)
          reject(new Error(`The child ended before ${what}; ${this.#state()}`))
      }
      this.#watchers.add(watcher)
      watcher()
    })
    return within(met, () => `${what}; ${this.#state()}`).finally(() =>
      this.#watchers.delete(watcher),
    )
  }

  async kill(): Promise<void> {
    // 0, the process could not be started, would be the group of this process.
    if (this.#group && this.pid !== 0) {
      try {
        process.kill(-this.pid, 'SIGKILL')
      } catch {
        // All have exited.
      }
    }
    this.#process.kill('SIGKILL')
    this.#process.stdin?.destroy()
    this.#process.stdout?.destroy()
    this.#process.stderr?.destroy()
    if (this.pid !== 0) await this.exited()
  }

  #gather(chunk: Buffer): void {
    this.#pieces.push(chunk)
    const text = this.#decoder.decode(chunk, { stream: true })
    if (!text.includes('\n')) {
      this.#unfinished += text
      return
    }
    const lines = (this.#unfinished + text).split('\n')
    this.#unfinished = lines.pop() ?? ''
    for (const line of lines) {
      if (line.startsWith('{"')) this.#validator.add('received', line)
      this.lines.push(line)
    }
  }

  #look(): void {
    for (const watcher of this.#watchers) watcher()
  }

  #state(): string {
    const end = this.#exited ? `exited with ${this.code ?? this.signal}` : 'still running'
    return `${this.lines.length} lines on stdout, ${end}, stderr: ${this.stderr.slice(-2000)}`
  }
}

/** Starts the server of tools.mjs and initializes it: line 0 is the response to initialize. */
export async function serving(options?: ChildOptions): Promise<Child> {
  return shaken(new Child(process.execPath, [TOOLS], options), options)
}

/** The same server started by the launcher line. */
export async function servingIsolated(options?: ChildOptions): Promise<Child> {
  return shaken(new Child('sh', ['-c', ISOLATED, TOOLS], options), options)
}

async function shaken(child: Child, { reading = true }: ChildOptions = {}): Promise<Child> {
  child.send(...HANDSHAKE)
  if (!reading) {
    // The response stays in the pipe; stderr shows that it was written.
    child.send(call(-1, 'wait', { ms: 0 }))
    await child.said('begun -1')
    return child
  }
  if ((await child.line(0)) !== GREETING) throw new Error(`Not the greeting: ${child.lines[0]}`)
  return child
}

export function within<Value>(
  promise: Promise<Value>,
  what: () => string,
  deadline = DEADLINE,
): Promise<Value> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`Waited ${deadline} ms for ${what()}`)), deadline)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

// Messages and their exact responses.

export const HANDSHAKE = [
  '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}',
  '{"jsonrpc":"2.0","method":"notifications/initialized"}',
] as const
export const GREETING =
  '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"logging":{},"tools":{"listChanged":true}},"serverInfo":{"name":"tools","version":"1.0.0"}}}'

export const ping = (id: number) => `{"jsonrpc":"2.0","id":${id},"method":"ping"}`
export const pong = (id: number) => `{"jsonrpc":"2.0","id":${id},"result":{}}`
export const call = (id: number, name: string, input: object = {}) =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"${name}","arguments":${JSON.stringify(input)}}}`
export const text = (id: number, said: string) =>
  `{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":${JSON.stringify(said)}}],"isError":false}}`
/** The response to a call that was in progress at shutdown. */
export const stopped = (id: number) =>
  `{"jsonrpc":"2.0","id":${id},"error":{"code":-32603,"message":"The server is shutting down and has stopped this request"}}`

import { type ChildProcess, spawn } from 'node:child_process'
import type { Channel, Receiver } from '../jsonrpc/channel.js'
import { StreamChannel } from './stdio-server.js'

/** How long a server has to exit after each hint that it should. */
const PATIENCE = 2000

export interface SpawnOptions {
  cwd?: string
  env?: Record<string, string>
}

/** A server started as a child process, as a channel. */
export class ProcessChannel implements Channel {
  readonly #child: ChildProcess
  readonly #streams: StreamChannel
  /** Resolves when the process has ended: with its exit code, or null after a signal. */
  readonly exited: Promise<number | null>

  constructor(command: string, args: readonly string[], { cwd, env }: SpawnOptions = {}) {
    const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'], cwd, env: { ...process.env, ...env } })
    this.#child = child
    this.#streams = new StreamChannel({ input: child.stdout, output: child.stdin, framing: 'lines' })
    this.exited = new Promise((resolve, reject) => {
      child.on('error', reject)
      child.on('close', (code) => resolve(code))
    })
  }

  receive(receiver: Receiver): void {
    this.#streams.receive(receiver)
    this.exited.then(
      () => receiver.closed(),
      (error: Error) => receiver.closed(error),
    )
  }

  send(frame: string): void {
    this.#streams.send(frame)
  }

  /** Ends the input, then asks, then kills: as the specification has it. */
  async close(): Promise<void> {
    await this.#streams.close()
    this.#child.stdin?.end()
    this.#child.stdout?.resume() // a server must be able to finish what it writes
    const asked = setTimeout(() => this.#child.kill('SIGTERM'), PATIENCE)
    const killed = setTimeout(() => this.#child.kill('SIGKILL'), 2 * PATIENCE)
    await this.exited.catch(() => {})
    clearTimeout(asked)
    clearTimeout(killed)
  }
}

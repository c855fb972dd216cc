import { writeSync } from 'node:fs'
import { withTimeout } from '../jsonrpc/deadline.js'
import type { TaskStatus } from '../extensions/tasks/client-task-state.js'
import type { TaskMembers } from '../extensions/tasks/client-tasks.js'
import { ignore } from '../jsonrpc/hook.js'
import { standardError } from '../transports/stdio-log.js'
import { quoted } from './hints.js'
import type { Arguments } from './options.js'
import { escaped, warn } from './print.js'
import type { Interruption } from './signals.js'
import { StatusLine } from './status-line.js'

/** Milliseconds for the server to acknowledge `tasks/cancel` when this process is to end. */
const CANCEL_TIMEOUT = 2000

/** The task of a call, if it becomes one: its status is shown, and Ctrl-C cancels it. */
export class FollowedTask implements Interruption {
  readonly #args: Arguments
  readonly #server: string | undefined
  #client: TaskMembers | undefined
  #status: StatusLine | undefined
  #id: string | undefined

  constructor(args: Arguments, server: string | undefined) {
    this.#args = args
    this.#server = server
  }

  connected(client: TaskMembers): void {
    this.#client = client
  }

  /** The status line of a call, in a terminal. */
  show(name: string): StatusLine | undefined {
    const { values } = this.#args
    const shows = standardError.isTTY && !values.has('json') && process.env['TERM'] !== 'dumb'
    this.#status = shows ? new StatusLine(name, process.stderr) : undefined
    return this.#status
  }

  seen(task: TaskStatus): void {
    const { taskId, status, statusMessage } = task
    const isOpen = status === 'working' || status === 'input_required'
    this.#id = isOpen ? taskId : undefined
    this.#status?.update(statusMessage ?? status.replace('_', ' '))
  }

  /** Ctrl-C cancels the task, and its end is waited for. Other signals do not wait that long. */
  interrupted(signal: string, abort: () => void): boolean {
    const task = this.#id === undefined ? undefined : this.#client?.task(this.#id)
    if (task === undefined) return false
    const cancelled = task.cancel().catch((error: unknown) => {
      // It has ended, and with it the connection on which the response was to come.
      if (this.#id === undefined) return
      warn(`the task could not be cancelled: ${error instanceof Error ? error.message : 'unknown'}`)
    })
    if (signal === 'SIGINT') warn('cancelling the task; press Ctrl-C again to leave it running')
    else void withTimeout(CANCEL_TIMEOUT, cancelled).then(abort, ignore)
    return true
  }

  /** The process exits: the task is left to the server. */
  left(): void {
    if (this.#id === undefined) return
    const { command } = this.#args
    const server = this.#server === undefined ? [] : [this.#server]
    const started = command === undefined ? server : ['--', ...command]
    const line = ['ccmcp', 'resume', this.#id, ...started].map(quoted).join(' ')
    const text = `ccmcp: the task was left running; to wait for it: ${line}`
    writeSync(2, `${standardError.isTTY ? escaped(text) : text}\n`)
  }
}

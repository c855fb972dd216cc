import type { CallOptions, Client, ResourceChange } from '../client.js'
import { type Command, HELP } from './command.js'
import { CommandError } from './options.js'
import { print, printJsonLine, styled, warn } from './print.js'
import { printContents } from './read.js'
import { CLIENT_OPTIONS, TARGET_NOTES } from './target.js'
import { isConnectionLost, withClient } from './with-client.js'

export const subscribe: Command = {
  usage: 'subscribe URI [SERVER | -- COMMAND] [options]',
  description:
    'Subscribes to a resource and prints a line for each update, until Ctrl-C. A lost connection is opened again.',
  notes: TARGET_NOTES,
  options: {
    read: { description: 'read the resource after each update and print its contents' },
    ...CLIENT_OPTIONS,
    json: { description: 'print one JSON object per line: time, uri, and contents with --read' },
    ...HELP,
  },
  positionals: [1, 2],
  takesServerCommand: true,
  run: (args) =>
    withClient(
      args,
      args.positionals[1],
      async (client, options) => {
        const [uri = ''] = args.positionals
        const updates = new Updates(client, options, {
          reads: args.values.has('read'),
          json: args.values.has('json'),
        })
        const ended = endOf(client, options.signal)
        await client.subscribe(uri, (change) => updates.add(change), options)
        warn(`subscribed to ${uri}; press Ctrl-C to stop`)
        await Promise.race([ended, updates.failed])
      },
      { isEndless: true },
    ),
}

/** Settles when there will be no further updates. */
function endOf(client: Client, signal: AbortSignal | undefined): Promise<void> {
  const ended = new Promise<void>((resolve, reject) => {
    signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true }) // see signals.ts
    client.on('reconnecting', ({ delay, error }) =>
      warn(
        `the connection was lost (${error.message}); trying again in ${Math.ceil(delay / 1000)} s`,
      ),
    )
    client.on('reconnected', () => warn('connected again'))
    client.on('unsubscribed', ({ error }) =>
      reject(new CommandError(1, `The server has ended the subscription: ${error.message}`)),
    )
    client.on('closed', ({ error }) => (error === undefined ? resolve() : reject(error)))
    // Nobody reads the updates any more, such as "head" at the end of a pipe.
    process.stdout.once('error', () => resolve())
  })
  ended.catch(() => {}) // until it is awaited
  return ended
}

interface Printing {
  reads: boolean
  json: boolean
}

/** Prints updates. While a resource is being read, further updates of it count as one. */
class Updates {
  readonly #client: Client
  readonly #options: CallOptions
  readonly #printing: Printing
  readonly #waiting = new Map<string, ResourceChange>()
  #reading = false
  #fail: (error: unknown) => void = () => {}
  /** Rejects when a resource cannot be read. */
  readonly failed = new Promise<never>((_, reject) => (this.#fail = reject))

  constructor(client: Client, options: CallOptions, printing: Printing) {
    this.#client = client
    this.#options = options
    this.#printing = printing
    this.failed.catch(() => {}) // until it is awaited
  }

  add(change: ResourceChange): void {
    if (!this.#printing.reads) return this.#print(change)
    this.#waiting.set(change.uri, change)
    if (this.#reading) return
    this.#reading = true
    this.#readAll().then(() => (this.#reading = false), this.#fail)
  }

  async #readAll(): Promise<void> {
    for (const [uri, change] of this.#waiting) {
      this.#waiting.delete(uri)
      try {
        const read = await this.#client.readResource(uri, { ...this.#options, fresh: true })
        this.#print(change, read.contents)
      } catch (error) {
        // There will be a change that was missed, and another attempt, when the client has connected again.
        if (!isConnectionLost(error)) throw error
      }
    }
  }

  #print({ uri, missed }: ResourceChange, contents?: Contents): void {
    const time = new Date().toISOString()
    if (this.#printing.json) {
      printJsonLine({
        time,
        uri,
        ...(missed === true ? { missed } : {}),
        ...(contents && { contents }),
      })
      return
    }
    const what = missed === true ? 'may have been updated while disconnected' : 'updated'
    print(styled('detail', time), ' ', styled('name', uri), ` ${what}\n`)
    for (const each of contents ?? []) printContents(each, true)
  }
}

type Contents = Awaited<ReturnType<Client['readResource']>>['contents']

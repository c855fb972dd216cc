import { callHook } from '../jsonrpc/hook.js'
import type { Params } from '../jsonrpc/message.js'
import { truncate } from '../jsonrpc/truncate.js'
import type { LogEntry } from '../jsonrpc/log-entry.js'
import type { SubscriptionEnded } from './subscriptions.js'

/** What happens to a connection, by the name of the event. */
export interface ClientEvents {
  /** The connection is lost, or an attempt has failed; the next one begins after `delay` milliseconds. */
  reconnecting: { readonly attempt: number; readonly delay: number; readonly error: Error }
  /** There is a new connection. `client.revision`, `client.capabilities` and `client.server` are those of the server now. */
  reconnected: { readonly attempts: number }
  /** The connection has ended for good: by `close`, or with the error that ended it. */
  closed: { readonly error?: Error }
  /** The server no longer sends what was subscribed to. */
  unsubscribed: SubscriptionEnded
}

type Listener = (event: never) => unknown

/** The listeners for notifications and events. */
export class Listeners {
  readonly #byName = new Map<string, Set<Listener>>()
  readonly #report: (entry: LogEntry) => void

  constructor(report: (entry: LogEntry) => void) {
    this.#report = report
  }

  add(name: string, listener: Listener): () => void {
    const listeners = this.#byName.get(name) ?? new Set()
    this.#byName.set(name, listeners.add(listener))
    return () => void listeners.delete(listener)
  }

  emit<Name extends keyof ClientEvents>(name: Name, event: ClientEvents[Name]): void {
    this.#call(name, event)
  }

  /** Calls the listeners for a notification. Its method is the server's choice: it must not be taken for an event. */
  notify(method: string, params: Params): void {
    if (!Object.hasOwn(EVENTS, method)) this.#call(method, params)
  }

  #call(name: string, event: unknown): void {
    for (const listener of this.#byName.get(name) ?? [])
      callHook(
        () => listener(event as never), // `on` types the listener by its name
        (error) =>
          this.#report({
            level: 'error',
            message: `A listener for ${truncate(name)} failed`,
            error,
          }),
      )
  }
}

const EVENTS: Readonly<Record<keyof ClientEvents, true>> = {
  reconnecting: true,
  reconnected: true,
  closed: true,
  unsubscribed: true,
}

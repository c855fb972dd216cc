import type { LogEntry } from '../jsonrpc/log-entry.js'
import { markHandled } from '../jsonrpc/hook.js'
import type { Params } from '../jsonrpc/message.js'
import { truncate } from '../jsonrpc/truncate.js'
import type { CallOptions } from './call-options.js'
import type { ClientSession } from './session.js'

export type List = 'tools' | 'prompts' | 'resources'

/** What is watched: a resource, a list, or what a field of an extension asks for. */
export type Topic =
  | { readonly uri: string }
  | { readonly list: List }
  | { readonly field: string; readonly value: unknown }

/** How the server of one session is told what is watched. */
export interface SubscriptionLink {
  /** Resolves when the server sends notifications of the topic; rejects if it does not. */
  add(topic: Topic, options?: CallOptions): Promise<void>
  /** Tells the server; may resolve before the server has been told. */
  remove(topic: Topic): Promise<void>
  /** Whether a notification belongs to what was added here. */
  owns(params: Params): boolean
  acknowledged(params: Params): void
  close(): void
}

export interface LinkObserver {
  /** Changes of these topics may have been missed. */
  missed(topics: readonly Topic[]): void
  /** The stream of these topics has ended, and is opened again. */
  interrupted(topics: readonly Topic[]): void
  /** The server no longer accepts a topic that it had accepted. */
  lost(topic: Topic, error: Error): void
  report(entry: LogEntry): void
}

/**
 * For revisions with a handshake: one request per resource; changes of lists are sent to every client.
 * https://modelcontextprotocol.io/specification/2025-11-25/server/resources#subscriptions
 */
export class RequestLink implements SubscriptionLink {
  readonly #session: ClientSession
  /** The last request for each URI: over HTTP the next one could overtake it. */
  readonly #last = new Map<string, Promise<unknown>>()

  constructor(session: ClientSession) {
    this.#session = session
  }

  add(topic: Topic, options?: CallOptions): Promise<void> {
    return this.#send('resources/subscribe', topic, options)
  }

  remove(topic: Topic): Promise<void> {
    return this.#send('resources/unsubscribe', topic)
  }

  owns(): boolean {
    return true
  }

  acknowledged(): void {}

  close(): void {}

  async #send(method: string, topic: Topic, options?: CallOptions): Promise<void> {
    if (!('uri' in topic)) return
    const { uri } = topic
    const before = this.#last.get(uri) ?? Promise.resolve()
    const request = () => this.#session.request(method, { uri }, options)
    const sent = markHandled(before.then(request, request))
    this.#last.set(uri, sent)
    try {
      await sent
    } finally {
      if (this.#last.get(uri) === sent) this.#last.delete(uri)
    }
  }
}

/** The notifications of a topic, for messages. */
export function describeTopic(topic: Topic): string {
  if ('uri' in topic) return `changes of ${truncate(topic.uri)}`
  if ('list' in topic) return `changes of the list of ${topic.list}`
  return `the field "${truncate(topic.field)}" of subscriptions/listen`
}

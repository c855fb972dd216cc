import { type Stream, open, send, statelessRequest } from '../http/caller.js'
import type { Cluster, ServerProcess } from './cluster.js'
import { type Findings, LIMIT } from './ledger.js'
import { type Random, pause } from './random.js'

/* Changes that were acknowledged, and clients of all processes that must hear of them. */

const URIS = ['note:0', 'note:1', 'note:2', 'note:3']

/** A client that listens at one process. One that is disconnected reads everything again when it reconnects. */
interface Listener {
  readonly stream: Stream
  /** When the listening was acknowledged. */
  since: number
  readonly heard: Map<string, number>
}

export class ChangeLedger {
  readonly #cluster: Cluster
  readonly #findings: Findings
  readonly #random: Random
  readonly #listeners = new Map<ServerProcess, Listener | 'opening'>()
  /** When the last change of each was requested that was acknowledged. */
  readonly #changed = new Map<string, number>()

  constructor(cluster: Cluster, findings: Findings, random: Random) {
    this.#cluster = cluster
    this.#findings = findings
    this.#random = random
  }

  async work(): Promise<void> {
    for (const each of this.#cluster.serving)
      if (!this.#listeners.has(each)) void this.#listen(each)
    const url = this.#cluster.any(this.#random)?.url
    const uri = this.#random.pick(URIS)
    if (url === undefined || uri === undefined) return
    const requested = performance.now()
    const sending = send(
      url,
      statelessRequest('tools/call', { name: 'change', arguments: { uri } }),
    )
    const answer = await this.#findings.settled('a change', sending).catch(() => undefined)
    if (answer?.status !== 200 || !answer.text.includes('"changed"')) return
    this.#changed.set(uri, requested)
    this.#findings.acknowledged.changes++
  }

  async #listen(at: ServerProcess): Promise<void> {
    this.#listeners.set(at, 'opening')
    const notifications = { resourceSubscriptions: URIS }
    const opening = open(at.url, statelessRequest('subscriptions/listen', { notifications }))
    const stream = await this.#findings
      .settled('subscriptions/listen', opening)
      .catch(() => undefined)
    if (stream === undefined || stream.status !== 200) {
      stream?.disconnect()
      this.#listeners.delete(at)
      return
    }
    const listener: Listener = { stream, since: Infinity, heard: new Map() }
    this.#listeners.set(at, listener)
    for (let event = await stream.next(); event !== undefined; event = await stream.next()) {
      const data = event.data ?? ''
      if (data.includes('notifications/subscriptions/acknowledged'))
        listener.since = performance.now()
      for (const uri of URIS)
        if (data.includes('notifications/resources/updated') && data.includes(`"${uri}"`))
          listener.heard.set(uri, performance.now())
    }
    this.#listeners.delete(at)
  }

  /** Every client that has listened since before a change hears of it, or is disconnected. */
  async verify(): Promise<void> {
    const changed = [...this.#changed]
    const missed = () =>
      [...this.#listeners.values()].flatMap((listener) => {
        if (listener === 'opening' || !listener.stream.isOpen) return []
        return changed.filter(
          ([uri, at]) => listener.since < at && (listener.heard.get(uri) ?? 0) < at,
        )
      })
    for (const until = performance.now() + LIMIT; performance.now() < until; await pause(10))
      if (missed().length === 0) return
    for (const [uri] of missed()) this.#findings.problem(`a change of ${uri} was not heard`)
  }

  close(): void {
    for (const listener of this.#listeners.values())
      if (listener !== 'opening') listener.stream.disconnect()
  }
}

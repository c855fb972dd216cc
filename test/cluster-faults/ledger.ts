import { type Answer, InitializedSession, type Stream } from '../http/caller.js'
import { commanding } from '../redis/redis-server.js'
import type { Cluster } from './cluster.js'
import { type Random, pause } from './random.js'

/* Sessions, subscriptions, ended sessions and events with ids: all that was acknowledged, compared with what is there. */

/** Milliseconds after which a request hangs, and after which a cluster has not recovered. */
export const LIMIT = 30_000
const NEWEST = '2025-11-25'

/** What a run has found. */
export class Findings {
  readonly problems: string[] = []
  /** Milliseconds until a session of the failed process was served. */
  readonly recoveries: number[] = []
  /** The case that is running. */
  during = ''
  kills = 0
  readonly acknowledged = {
    sessions: 0,
    subscriptions: 0,
    deletions: 0,
    events: 0,
    changes: 0,
    tasks: 0,
    'task operations': 0,
    results: 0,
  }

  problem(text: string): void {
    const problem = `${this.during}: ${text}`
    if (!this.problems.includes(problem)) process.stdout.write(`FAILED ${problem}\n`)
    this.problems.push(problem)
  }

  /** Every request must settle. */
  async settled<Value>(what: string, request: Promise<Value>): Promise<Value> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        this.problem(`${what} hangs`)
        reject(new Error(`${what} hangs`))
      }, LIMIT)
    })
    try {
      return await Promise.race([request, late])
    } finally {
      clearTimeout(timer)
    }
  }
}

interface KnownSession {
  readonly client: InitializedSession
  readonly subscribed: Set<string>
  /** The events of each stream that have come with an id. */
  readonly streams: Map<string, string>[]
  /** Whether its DELETE was acknowledged, or may have been executed. */
  ended: 'no' | 'perhaps' | 'yes'
}

const isOpen = ({ ended }: KnownSession): boolean => ended === 'no'
/** Answers that say nothing of what is stored. */
const isTemporary = ({ status }: Answer): boolean => status === 503 || status === 502
/** The owner may have been killed meanwhile. */
const isResult = ({ status, text }: Answer): boolean => status === 200 && text.includes('"result"')

export class SessionLedger {
  readonly #cluster: Cluster
  readonly #findings: Findings
  readonly #random: Random
  readonly #known: KnownSession[] = []

  constructor(cluster: Cluster, findings: Findings, random: Random) {
    this.#cluster = cluster
    this.#findings = findings
    this.#random = random
  }

  /** A session that was acknowledged; undefined where the process did not answer. */
  async open(url = this.#cluster.any(this.#random)?.url): Promise<KnownSession | undefined> {
    if (url === undefined) return undefined
    const opening = InitializedSession.open(url, NEWEST).catch(() => undefined)
    const client = await this.#findings.settled('initialize', opening).catch(() => undefined)
    if (client === undefined) return undefined
    const known: KnownSession = { client, subscribed: new Set(), streams: [], ended: 'no' }
    this.#known.push(known)
    this.#findings.acknowledged.sessions++
    return known
  }

  /** Opens, subscribes, calls and ends. */
  async work(): Promise<void> {
    const known = await this.open()
    if (known === undefined) return
    for (let number = 0; number < 3; number++) await this.#subscribe(known, `note:${number}`)
    if (this.#random.next() < 0.7) await this.#stream(known)
    else await this.#end(known)
  }

  async #subscribe(known: KnownSession, uri: string): Promise<void> {
    const answer = await this.#ask(known, 'resources/subscribe', { uri })
    if (answer === undefined || !isResult(answer)) return
    known.subscribed.add(uri)
    this.#findings.acknowledged.subscriptions++
  }

  async #end(known: KnownSession): Promise<void> {
    known.ended = 'perhaps'
    const url = this.#cluster.any(this.#random)?.url ?? known.client.url
    const ending = known.client.at(url).end()
    const answer = await this.#findings.settled('DELETE', ending).catch(() => undefined)
    if (answer?.status === 404) this.#findings.problem('a session is lost: DELETE got 404')
    if (answer?.status !== 204) return
    known.ended = 'yes'
    this.#findings.acknowledged.deletions++
  }

  /** A call whose events have ids. */
  async #stream(known: KnownSession): Promise<void> {
    const url = this.#cluster.any(this.#random)?.url ?? known.client.url
    const params = { name: 'count', arguments: {}, _meta: { progressToken: 1 } }
    const calling = known.client.at(url).stream('tools/call', params)
    const stream = await this.#findings.settled('a call', calling).catch(() => undefined)
    if (stream === undefined) return
    await this.#findings.settled('the stream of a call', stream.ended()).catch(() => undefined)
    stream.disconnect()
    const events = new Map(
      stream.seen.flatMap(({ id, data }) => (id === undefined ? [] : [[id, data ?? '']])),
    )
    if (events.size < 2) return
    known.streams.push(events)
    this.#findings.acknowledged.events += events.size
  }

  async #ask(
    known: KnownSession,
    method: string,
    params: object,
    url = this.#cluster.any(this.#random)?.url,
  ): Promise<Answer | undefined> {
    if (url === undefined) return undefined
    const asking = known.client.at(url).request(method, params)
    const answer = await this.#findings.settled(method, asking).catch(() => undefined)
    if (answer?.status === 404 && known.ended === 'no') {
      const { redis, prefix } = this.#cluster
      const key = `{${prefix}}:s:${known.client.session.slice(0, -20)}`
      const stored = await commanding(redis.url, (command) => command('HGETALL', key))
      this.#findings.problem(
        `a session is lost: ${method} got 404; Redis has ${JSON.stringify(stored)} (${key})`,
      )
      known.ended = 'perhaps'
    }
    return answer
  }

  /** Waits until a session is served by a process; returns the last answer. */
  async served(known: KnownSession): Promise<Answer | undefined> {
    let answer: Answer | undefined
    for (const until = performance.now() + LIMIT; performance.now() < until; await pause(5)) {
      answer = await this.#ask(known, 'tools/call', { name: 'where', arguments: {} })
      if (answer !== undefined && !isTemporary(answer) && !answer.text.includes('may have run'))
        if (answer.status === 404 || isResult(answer)) return answer
    }
    this.#findings.problem(`a session was not served: ${answer?.status} ${answer?.text}`)
    return answer
  }

  /** Compares some sessions, or all. */
  async verify(most = this.#known.length): Promise<void> {
    const certain = this.#known.filter(({ ended }) => ended !== 'perhaps')
    const chosen =
      most >= certain.length
        ? certain
        : Array.from({ length: most }, () => this.#random.pick(certain.slice(-100)))
    await Promise.all(
      [0, 1, 2, 3].map(async (lane) => {
        for (let index = lane; index < chosen.length; index += 4) {
          const known = chosen[index]
          if (known !== undefined) await this.#compare(known)
        }
      }),
    )
  }

  async #compare(known: KnownSession): Promise<void> {
    const hasEnded = known.ended === 'yes'
    const answer = await this.served(known)
    if (hasEnded && answer?.status === 200)
      this.#findings.problem('a session that has ended is served')
    if (!isOpen(known)) return
    const subscribed = [...known.subscribed]
    const { redis, prefix } = this.#cluster
    const key = `{${prefix}}:s:${known.client.session.slice(0, -20)}`
    const state = await commanding(redis.url, (command) => command('HGET', key, 's'))
    // It may have been ended meanwhile.
    if (!isOpen(known)) return
    for (const uri of subscribed)
      if (!String(state).includes(uri)) this.#findings.problem(`a subscription to ${uri} is lost`)
    for (const events of known.streams) await this.#replay(known, events)
  }

  async #replay(known: KnownSession, events: Map<string, string>): Promise<void> {
    const [first = ''] = events.keys()
    let stream: Stream | undefined
    for (const until = performance.now() + LIMIT; performance.now() < until; await pause(5)) {
      const url = this.#cluster.any(this.#random)?.url ?? known.client.url
      const resuming = known.client.at(url).listen(first)
      stream = await this.#findings.settled('resuming', resuming).catch(() => undefined)
      if (stream === undefined) continue
      const replayed = stream
      await this.#findings.settled('a resumed stream', stream.ended()).catch(() => undefined)
      stream.disconnect()
      const found = new Map(replayed.seen.map(({ id, data }) => [id, data ?? '']))
      const missing = [...events].filter(
        ([id, data]) => id !== first && data !== '' && found.get(id) !== data,
      )
      if (missing.length === 0) return
      // Its process may have been cut off from Redis, or killed, before it had sent all.
      if (stream.status === 200 && replayed.seen.at(-1)?.data?.includes('"id"') !== true) continue
      if (stream.status !== 503 && stream.status !== 502) {
        this.#findings.problem(
          `of ${events.size} events with an id, ${missing.length} were not replayed: ${stream.status} ${stream.text}`,
        )
        return
      }
    }
    this.#findings.problem(`events could not be replayed: ${stream?.status} ${stream?.text}`)
  }
}

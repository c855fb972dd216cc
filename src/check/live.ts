import type { Definitions } from '../capture/definitions.js'
import type { SchemaCheck } from '../capture/schema-check.js'
import {
  type Revision,
  handshakeRevisions,
  statelessRevisions,
} from '../protocol/revisions/index.js'
import { isObject } from '../schema/issue.js'
import type { CaptureFile } from '../tap/capture-file.js'
import type { Connection, Reply } from './connection.js'
import { HTTP_PROBES } from './http-probes.js'
import { FINAL_PROBES, PROBES, type Probe, type ProbeOptions, type Transport } from './probes.js'
import { Durations, type Found, Recording } from './recording.js'
import { plainFinding } from './report.js'
import { type Opening, type Session, describeError, noResponse, openSession } from './session.js'

/** A server that each probe connects to anew. */
export interface LiveTarget {
  readonly transport: Transport
  /** `file`: where an HTTP connection records its requests; on stdio, the recording writes to it. */
  open(recording: Recording, file?: CaptureFile): Connection
  /** Called when a session is refused: switches to the other transport if the server has it, and returns whether it did. */
  switchTransport?(connection: Connection): Promise<boolean>
  /** What is known about why a connection does not work. */
  explain(connection: Connection): string
}

export interface LiveOptions extends ProbeOptions {
  schemas: ReadonlyMap<string, SchemaCheck>
  /** Opens the capture of a probe, if captures are kept. */
  captureOf(probe: string): CaptureFile | undefined
  /** Whether a probe is made (default: all are). */
  selects?(probe: string): boolean
  /** Called after each probe. */
  probed(result: ProbeResult): void
  signal: AbortSignal
}

/** What one probe found. */
export interface ProbeResult {
  name: string
  /** `refused`: the server does not have this revision. */
  status: 'done' | 'refused'
  /** What is worth knowing, such as the revision that was negotiated. */
  detail: string
  milliseconds: number
  found: readonly Found[]
  /** The file with the capture, if it was kept. */
  capture: string | undefined
}

/** What the check has learnt about a server. */
export interface LiveReport {
  probes: readonly ProbeResult[]
  /** The revisions that the server has chosen, newest last; empty if no connection was made. */
  revisions: readonly string[]
  transport: Transport
  server: { name: string; version: string } | undefined
  /** The shortest time to the first response, in milliseconds. */
  startup: number | undefined
  /** The definitions in the newest revision. */
  definitions: Definitions | undefined
  durations: Durations
  /** Why there was no connection. */
  failure: string | undefined
}

/** Milliseconds for the first response. */
const START_TIMEOUT = 30_000
/** Milliseconds for a server of an earlier revision to refuse `server/discover`; some never do. */
const DISCOVER_TIMEOUT = 5000
const SLOW_START = 5000

/** Checks a server by connecting to it several times. Rejects only if `signal` is aborted. */
export class LiveCheck {
  readonly #target: LiveTarget
  readonly #options: LiveOptions
  readonly #probes: ProbeResult[] = []
  readonly #durations = new Durations()
  readonly #chosen = new Set<string>()
  #startup: number | undefined
  #slowestStart = 0
  #server: LiveReport['server']
  #definitions: Definitions | undefined
  #failure: string | undefined

  constructor(target: LiveTarget, options: LiveOptions) {
    this.#target = target
    this.#options = options
  }

  async run(): Promise<LiveReport> {
    const handshake = await this.#handshakes()
    const stateless = await this.#discover()
    this.#checkStart()
    const kinds = [handshake, stateless].filter((each) => each !== undefined)
    for (const revision of kinds)
      for (const probe of [...PROBES, ...HTTP_PROBES]) await this.#probe(probe, revision)
    const newest = kinds.at(-1)
    if (newest !== undefined) for (const probe of FINAL_PROBES) await this.#probe(probe, newest)
    return {
      probes: this.#probes,
      revisions: [...this.#chosen].toSorted(),
      transport: this.#target.transport,
      server: this.#server,
      startup: this.#startup,
      definitions: this.#definitions,
      durations: this.#durations,
      failure: this.#chosen.size === 0 ? this.#failure : undefined,
    }
  }

  /** Opens a session in each revision; returns the newest that the server has chosen. */
  async #handshakes(): Promise<Revision | undefined> {
    let newest: Revision | undefined
    const open = [...handshakeRevisions]
    for (let revision = open.shift(); revision !== undefined; revision = open.shift()) {
      const tried = revision
      let isReached = true
      await this.#connect(`initialize ${tried.id}`, async (connection) => {
        const opening = await openSession(connection, tried, START_TIMEOUT)
        const isRefused = opening.session === undefined && newest === undefined
        if (isRefused && (await this.#target.switchTransport?.(connection)) === true) {
          open.unshift(tried)
          return undefined
        }
        if (opening.reply.kind === 'none') {
          isReached = false
          this.#failure ??= this.#target.explain(connection)
        }
        const { session } = opening
        if (session === undefined) return refusal(opening)
        this.#started(session, opening.reply)
        if (newest === undefined || session.revision.id > newest.id) newest = session.revision
        await explore(session)
        this.#definitions = connection.recording.definitions
        return `negotiated ${session.revision.id}`
      })
      // A server that cannot be started is not started again and again.
      if (!isReached && newest === undefined) return undefined
    }
    return newest
  }

  async #discover(): Promise<Revision | undefined> {
    let found: Revision | undefined
    // HTTP+SSE has no stateless requests.
    if (this.#target.transport === 'sse') return undefined
    for (const revision of statelessRevisions)
      await this.#connect(`discover ${revision.id}`, async (connection) => {
        // On a busy machine, starting takes most of the time.
        const discoverTimeout = DISCOVER_TIMEOUT + 3 * this.#slowestStart
        const timeout =
          this.#chosen.size === 0 ? START_TIMEOUT : Math.min(discoverTimeout, START_TIMEOUT)
        const opening = await openSession(connection, revision, timeout)
        const { session } = opening
        if (session === undefined) return refusal(opening)
        this.#started(session, opening.reply)
        found = revision
        await session.list()
        this.#definitions = connection.recording.definitions
        return ''
      })
    return found
  }

  /** By the fastest of several starts: the others may have had to wait for the machine. */
  #checkStart(): void {
    const milliseconds = this.#startup ?? 0
    if (milliseconds <= SLOW_START) return
    const found = [plainFinding('slow-start', `${(milliseconds / 1000).toFixed(1)} s`)]
    this.#add({
      name: 'start-up',
      status: 'done',
      detail: '',
      milliseconds,
      found,
      capture: undefined,
    })
  }

  #add(result: ProbeResult): void {
    this.#probes.push(result)
    this.#options.probed(result)
  }

  #started(session: Session, { milliseconds }: Reply): void {
    const { revision, server } = session
    this.#chosen.add(revision.id)
    this.#startup = Math.min(this.#startup ?? Number.POSITIVE_INFINITY, milliseconds)
    this.#slowestStart = Math.max(this.#slowestStart, milliseconds)
    if (!isObject(server)) return
    this.#server = {
      name: String(server['name']).slice(0, 100),
      version: String(server['version']).slice(0, 100),
    }
  }

  async #probe(probe: Probe, revision: Revision): Promise<void> {
    if ((probe.transport ?? this.#target.transport) !== this.#target.transport) return
    if (probe.name === 'latency' && this.#options.samples === 0) return
    await this.#connect(`${probe.name} ${revision.id}`, async (connection) => {
      const { session } = await openSession(connection, revision, START_TIMEOUT)
      if (session === undefined) return 'the session could not be opened again'
      if (probe.applies?.(session) === false) return undefined
      await probe.run(session, this.#options)
      return ''
    })
  }

  /** Runs something on a connection of its own. Undefined: there was nothing to try. */
  async #connect(
    name: string,
    use: (connection: Connection) => Promise<string | undefined | { refused: string }>,
  ): Promise<void> {
    const { signal, schemas, selects } = this.#options
    signal.throwIfAborted()
    if (selects?.(name) === false) return
    const file = this.#options.captureOf(name)
    const isStdio = this.#target.transport === 'stdio'
    const recording = new Recording({
      schemas,
      durations: this.#durations,
      file: isStdio ? file : undefined,
    })
    const started = performance.now()
    const connection = this.#target.open(recording, file)
    const stop = () => void connection.close()
    signal.addEventListener('abort', stop)
    let outcome: Awaited<ReturnType<typeof use>>
    try {
      outcome = await use(connection)
    } finally {
      signal.removeEventListener('abort', stop)
      await connection.close()
      await file?.close()
    }
    signal.throwIfAborted()
    if (outcome === undefined) return
    const result: ProbeResult = {
      name,
      status: typeof outcome === 'string' ? 'done' : 'refused',
      detail: typeof outcome === 'string' ? outcome : outcome.refused,
      milliseconds: performance.now() - started,
      found: recording.found,
      capture: file?.path,
    }
    this.#add(result)
  }
}

function refusal({ reply }: Opening): { refused: string } {
  if (reply.kind === 'none') return { refused: 'no response' }
  return { refused: reply.kind === 'error' ? describeError(reply.value) : 'another revision' }
}

/** What every client does: the lists, and a ping. */
async function explore(session: Session): Promise<void> {
  await session.list()
  const reply = await session.ping()
  const isEmptyResult = reply.kind === 'result' && isObject(reply.value)
  if (reply.kind === 'none') noResponse(session, 'ping', reply)
  else if (!isEmptyResult) session.report('failed-ping', describeError(reply.value), reply)
}

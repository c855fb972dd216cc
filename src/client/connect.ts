import type { Tapped } from '../jsonrpc/channel.js'
import type { Params } from '../jsonrpc/message.js'
import type { Report } from '../jsonrpc/peer.js'
import type { Implementation } from '../protocol/model.js'
import { type Revision, newest, revisions } from '../protocol/revisions/index.js'
import { ProbeEndedServer, type Verdict, probe, shakeHands } from './opening.js'
import { Client, ClientSession, type Reached, type SessionOptions } from './session.js'
import { ConnectionError, type Target, type TargetChannel } from './target.js'

export interface ConnectOptions {
  /** A protocol revision to insist on; by default the newest that the server knows. */
  revision?: string
  /** Who this client says it is. */
  info?: Implementation
  capabilities?: Params
  /** Milliseconds for the server's first answer (default 30 s). */
  timeout?: number
  /** Milliseconds for the question whether requests may describe themselves (default 2 s). */
  probeTimeout?: number
  /** Takes what the server does wrong: for a log. */
  report?: (report: Report) => void
  /** Sees every message in both directions. */
  tap?: (tapped: Tapped) => void
}

/** How a target wanted to be opened last time. */
const verdicts = new WeakMap<Target, Verdict>()

/** Connects to a server: finds out which revision it speaks, and opens the conversation accordingly. */
export async function connect(target: Target, options: ConnectOptions = {}): Promise<Client> {
  const wanted = options.revision === undefined ? undefined : known(options.revision)
  const {
    info = { name: 'ccmcp', version: '0' },
    capabilities = {},
    timeout = 30_000,
    probeTimeout = 2000,
    report = () => {},
    tap,
  } = options
  const sessionOptions: SessionOptions = { info, capabilities, report, ...(tap === undefined ? {} : { tap }) }
  const attempt = new Attempt(target, sessionOptions)
  try {
    const reached = await attempt.open(wanted, verdicts.get(target), timeout, Math.min(probeTimeout, timeout))
    verdicts.set(target, reached.revision.opening)
    return new Client(attempt.session, reached)
  } catch (error) {
    throw await attempt.fail(error)
  }
}

class Attempt {
  readonly #target: Target
  readonly #options: SessionOptions
  #channel: TargetChannel
  session: ClientSession

  constructor(target: Target, options: SessionOptions) {
    this.#target = target
    this.#options = options
    this.#channel = target.open()
    this.session = new ClientSession(this.#channel, options)
  }

  async open(wanted: Revision | undefined, verdict: Verdict | undefined, timeout: number, probeTimeout: number): Promise<Reached> {
    const opening = wanted?.opening ?? verdict
    if (opening === 'handshake') return await shakeHands(this.session, wanted, this.#options, timeout)
    try {
      const found = await probe(this.session, wanted ?? newest, wanted === undefined ? probeTimeout : timeout)
      if (found !== undefined && (wanted === undefined || found.revision === wanted)) return found
      if (wanted !== undefined) throw new ConnectionError(`The server does not serve ${wanted.id}`)
    } catch (error) {
      if (!(error instanceof ProbeEndedServer) || wanted !== undefined) throw error
      this.#channel = this.#target.open()
      this.session = new ClientSession(this.#channel, this.#options)
    }
    return await shakeHands(this.session, undefined, this.#options, timeout)
  }

  /** Ends what was begun and says why it did not work. */
  async fail(error: unknown): Promise<Error> {
    const reason = error instanceof Error ? error.message : String(error)
    await this.session.peer.close()
    const diagnosis = this.#channel.diagnose?.() ?? ''
    return new ConnectionError(diagnosis === '' ? reason : `${reason}\n${diagnosis}`, { cause: error })
  }
}

function known(id: string): Revision {
  const revision = revisions.find((each) => each.id === id)
  if (revision !== undefined) return revision
  throw new TypeError(`Unknown protocol revision ${JSON.stringify(id)}; known are ${revisions.map((each) => each.id).join(', ')}`)
}

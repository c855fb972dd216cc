import type { Connection } from './connection.js'
import type { Keys } from './keys.js'
import { asList, asPairs, asText, asTexts } from './replies.js'
import { type Script, whole } from './script.js'
import { unref } from '../../runtime.js'

/*
 * The changes of a server are a stream of Redis that every process reads (XREAD BLOCK). Pub/Sub would lose what is sent
 * while a process is not connected, without telling it. Each entry names the one before it: `p` its id, `b` the bytes of
 * all entries so far, `o` the process that has appended it, `c` the changes. If `p` of the next entry is not the id that
 * the reader has read last, it has missed entries: they were trimmed, or Redis has lost its data. Ids are times, so they
 * do not begin again.
 */

/** Milliseconds after which the stream expires if no process reads it or appends to it. */
const TTL = 600_000
/** Maximum number of entries, and of their bytes without the newest. */
const MAX_ENTRIES = 1000
const MAX_BYTES = 1024 * 1024
/** The id before the first entry. */
const NONE = '0-0'
/** Maximum number of entries that are read at once. */
const COUNT = 100
/** Milliseconds until reading is tried again after a failure; doubled each time up to the maximum. */
const MIN_BACKOFF = 50
const MAX_BACKOFF = 2000

const APPEND: Script = {
  source: `
local key, origin, text = KEYS[1], ARGV[1], ARGV[2]
local previous, bytes = '${NONE}', #text
local last = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)[1]
if last then
  previous = last[1]
  bytes = bytes + (tonumber(last[2][4]) or 0)
end
redis.call('XADD', key, '*', 'p', previous, 'b', string.format('%.0f', bytes), 'o', origin, 'c', text)
redis.call('PEXPIRE', key, ${TTL})
while true do
  local oldest = redis.call('XRANGE', key, '-', '+', 'COUNT', 1)[1]
  local held = bytes - #text - (tonumber(oldest[2][4]) or 0) + #(oldest[2][8] or '')
  if held <= ${MAX_BYTES} and redis.call('XLEN', key) <= ${MAX_ENTRIES} then break end
  redis.call('XDEL', key, oldest[1])
end
return 1`,
}

/** The newest entry, and which start of which server has replied: one that was restarted, or that has taken over, may have lost entries. */
const NEWEST: Script = {
  source: `
redis.call('PEXPIRE', KEYS[1], ARGV[1])
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
local info = redis.pcall('INFO', 'server')
local run = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or ''
return { last and last[1] or '${NONE}', run }`,
}

export interface StreamListener {
  /** Called with the changes of each entry that another process has appended, in order. */
  changed(text: string): void
  /** Called if entries may have been missed, before those that follow. */
  missed(): void
  /** Called once each time that the stream cannot be read any more. */
  failed(error: unknown): void
}

interface Entry {
  readonly id: string
  readonly previous: string
  readonly origin: string
  readonly text: string
}

/** The changes of a server that all its processes append to and read. */
export class ChangeStream {
  /** By which this process recognizes its own entries. */
  readonly #origin: string = crypto.randomUUID()
  readonly #key: string
  readonly #connection: Connection
  readonly #reading: Connection
  /** Milliseconds for which Redis waits for entries. */
  readonly #block: number
  readonly #timeout: number
  readonly #listeners = new Set<StreamListener>()
  #reader: Reader | undefined

  /** `reading` is a connection of its own: commands would wait while it does. `timeout` is that of both, in milliseconds. */
  constructor(connection: Connection, reading: Connection, keys: Keys, timeout: number) {
    this.#connection = connection
    this.#reading = reading
    this.#timeout = timeout
    this.#block = Math.round(2 * timeout)
    this.#key = keys.changes()
  }

  async append(text: string): Promise<void> {
    await this.#connection.run(APPEND, [this.#key], [this.#origin, text])
  }

  /** Reads the stream as long as there are listeners; the function that this returns removes the listener. */
  listen(listener: StreamListener): () => void {
    this.#listeners.add(listener)
    this.#reading.open()
    this.#reader ??= new Reader(this.#source(), this.#listeners, this.#origin)
    return () => {
      if (!this.#listeners.delete(listener) || this.#listeners.size > 0) return
      this.#reader?.stop()
      this.#reader = undefined
      this.#reading.close()
    }
  }

  #source(): Source {
    const key = this.#key
    return {
      newest: async () => {
        const [id = NONE, run = ''] = asTexts(await this.#reading.run(NEWEST, [key], [whole(TTL)]))
        return { id, run }
      },
      after: async (id) => {
        const wait = ['COUNT', String(COUNT), 'BLOCK', String(this.#block)]
        const command = ['XREAD', ...wait, 'STREAMS', key, id]
        const limit = this.#block + this.#timeout
        const [found] = asPairs(await this.#reading.command(command, key, limit)).values()
        return asList(found).map(entryOf)
      },
    }
  }
}

interface Source {
  newest(): Promise<{ id: string; run: string }>
  /** The entries after an id; empty if there are none for a while. */
  after(id: string): Promise<Entry[]>
}

/** Reads the stream until it is stopped. */
class Reader {
  readonly #source: Source
  readonly #listeners: ReadonlySet<StreamListener>
  readonly #origin: string
  #stopped = false
  /** The last entry that was read, and the server that had it. Undefined at first. */
  #last: { id: string; run: string } | undefined
  #failures = 0
  #wake = () => {}

  constructor(source: Source, listeners: ReadonlySet<StreamListener>, origin: string) {
    this.#source = source
    this.#listeners = listeners
    this.#origin = origin
    void this.#readAll()
  }

  /** Ends it, once its connection is closed. */
  stop(): void {
    this.#stopped = true
    this.#wake()
  }

  async #readAll(): Promise<void> {
    while (!this.#stopped)
      try {
        await this.#catchUp()
        this.#failures = 0
        await this.#readUntilIdle()
      } catch (error) {
        await this.#failed(error)
      }
  }

  /** Compares what was read with what there is. */
  async #catchUp(): Promise<void> {
    const { id, run } = await this.#source.newest()
    const last = this.#last
    // Redis may not tell which one it is: then it may be another one after each failure.
    const same = run === last?.run && (run !== '' || this.#failures === 0)
    const complete = last !== undefined && same && !isBefore(id, last.id)
    // If there are newer entries, reading them shows whether some are missing.
    this.#last = complete ? last : { id, run }
    if (!complete) this.#tell((listener) => listener.missed())
  }

  async #readUntilIdle(): Promise<void> {
    for (let last = this.#last; last !== undefined && !this.#stopped; last = this.#last) {
      const entries = await this.#source.after(last.id)
      if (entries.length === 0) return
      for (const entry of entries) this.#read(entry, last.run)
    }
  }

  #read({ id, previous, origin, text }: Entry, run: string): void {
    const missed = previous !== this.#last?.id
    this.#last = { id, run }
    const own = origin === this.#origin
    this.#tell((listener) => {
      if (missed) listener.missed()
      if (!own) listener.changed(text)
    })
  }

  #tell(tell: (listener: StreamListener) => void): void {
    if (!this.#stopped) for (const listener of this.#listeners) tell(listener)
  }

  async #failed(error: unknown): Promise<void> {
    if (this.#failures === 0) this.#tell((listener) => listener.failed(error))
    if (this.#stopped) return
    const backoff = Math.min(MAX_BACKOFF, MIN_BACKOFF * 2 ** this.#failures++)
    await new Promise<void>((resolve) => {
      // Not all processes at the same time.
      const timer = unref(setTimeout(resolve, backoff * (0.5 + Math.random() / 2)))
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}

function entryOf(entry: unknown): Entry {
  const [id, fields] = asList(entry)
  const pairs = asPairs(fields)
  const text = (name: string) => asText(pairs.get(name)) ?? ''
  return { id: asText(id) ?? NONE, previous: text('p'), origin: text('o'), text: text('c') }
}

/** Whether an id of a stream is lower than another one. */
function isBefore(one: string, other: string): boolean {
  const [time = 0, number = 0] = one.split('-').map(Number)
  const [otherTime = 0, otherNumber = 0] = other.split('-').map(Number)
  return time < otherTime || (time === otherTime && number < otherNumber)
}

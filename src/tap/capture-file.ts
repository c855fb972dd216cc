import { closeSync, constants, fstatSync, openSync, statSync, write, writeSync } from 'node:fs'
// Imported, because each access to the global `performance` calls a getter.
import { performance } from 'node:perf_hooks'
import {
  type CaptureRecord,
  type Direction,
  type EventRecord,
  type Transport,
  captureHeader,
  encodeRecord,
} from '../capture/format.js'
import { VERSION } from '../version.js'
import { type RecordedBytes, encodeBytes, encodedSize } from './chunk-encoder.js'

/** Bytes that wait for the disk; beyond that, they are dropped from the capture. */
const MAX_WAITING = 32 * 1024 * 1024
/** Bytes that an HTTP event counts for, in addition to those of its headers. */
const EVENT_BYTES = 1024
/** Milliseconds to collect records for one write, and the bytes that are written at once. */
const FLUSH_DELAY = 20
const BATCH_BYTES = 4 * 1024 * 1024
/** Records that are encoded together. Encoding those of 20 ms at once would delay one call of a hundred. */
const SLICE = 16
/** Bytes of a character of a string. */
const MAX_UTF8 = 3
/** Milliseconds to write the rest at the end, and between checks of that. */
const CLOSE_TIMEOUT = 2000
const CLOSE_CHECK = 100
/** A second capture of the same name gets a number. */
const MAX_NUMBER = 1000
/** The permissions of the group and of others to read a file. */
const READABLE_BY_OTHERS = 0o044

export interface CaptureFileOptions {
  /** What is recorded (default stdio). */
  transport?: Transport
  /** Maximum bytes of the file; beyond that, only a few events are written. */
  maxBytes: number
  /** Called once, if the capture cannot be written. */
  failed(error: Error): void
}

type Source = RecordedBytes['source']
type Entry = RecordedBytes | CaptureRecord
/** What may be dropped: bytes, and events of HTTP. */
type Dropped = Source | 'events'

/** Writes a capture. Nothing here throws or waits: if the file cannot be written, the capture ends and the traffic goes on. */
export class CaptureFile {
  /** The file, if it could be opened. */
  readonly path: string | undefined
  readonly #options: CaptureFileOptions
  readonly #origin = performance.now()
  #descriptor: number | undefined
  /** What is to be encoded. That is deferred, so that bytes are forwarded first. */
  #queue: Entry[] = []
  /** The bytes of memory that each of the queue counts for. Events that are not limited are few, and count for nothing. */
  #weights: number[] = []
  /** Encoded records that are not yet being written: the first `#filled` bytes of `#batch`. They count for `#encoded` bytes of `#waiting`. */
  #batch = Buffer.alloc(0)
  #filled = 0
  #encoded = 0
  /** The buffer of the last write. Only one write is in progress. */
  #spare = Buffer.alloc(0)
  #waiting = 0
  #written = 0
  #writing = false
  #timer: ReturnType<typeof setTimeout> | undefined
  #isSliceDue = false
  readonly #flushSync = () => {
    if (this.#descriptor === undefined) return
    try {
      for (this.#encode(); this.#filled > 0; this.#encode()) {
        for (let at = 0; at < this.#filled;)
          at += writeSync(this.#descriptor, this.#batch, at, this.#filled - at)
        this.#filled = 0
      }
    } catch {
      // The process is exiting; the error cannot be reported.
    }
  }
  #offsets: Record<Source, number> = { in: 0, out: 0, stderr: 0 }
  #dropped: Record<Dropped, number> = { in: 0, out: 0, stderr: 0, events: 0 }
  #isDropping = false
  #isFull = false
  #drained: (() => void) | undefined

  constructor(path: string, options: CaptureFileOptions) {
    this.#options = options
    try {
      const opened = open(path)
      this.#descriptor = opened.descriptor
      this.path = opened.path
    } catch (error) {
      options.failed(error as Error) // thrown by node:fs
    }
    this.#add(captureHeader(new Date(), `ccmcp ${VERSION}`, options.transport), 0)
    // If this process ends early, by an error.
    process.on('exit', this.#flushSync)
  }

  /** Nanoseconds since the start of the capture. */
  get now(): number {
    return Math.round((performance.now() - this.#origin) * 1e6)
  }

  /** Records bytes that were read. They must not be changed afterwards. */
  bytes(source: Source, bytes: Uint8Array): void {
    const offset = this.#offsets[source]
    this.#offsets[source] += bytes.length
    const entry: Entry = { type: 'bytes', source, ns: this.now, offset, bytes, exchange: undefined }
    this.#limited(entry, bytes.length, source, bytes.length)
  }

  /** Records bytes of the body of an HTTP request (`in`) or response (`out`). */
  body(exchange: number, source: Direction, offset: number, bytes: Uint8Array): void {
    const entry: Entry = { type: 'bytes', source, ns: this.now, offset, bytes, exchange }
    this.#limited(entry, bytes.length, source, bytes.length)
  }

  event(event: string, members: Readonly<Record<string, unknown>> = {}): void {
    this.#add({ type: 'event', event, ns: this.now, ...members }, 0)
  }

  /** Records an event of an HTTP exchange or connection. There may be any number of them, so they are limited like bytes. */
  httpEvent(event: string, members: Readonly<Record<string, unknown>>): void {
    this.httpRecord({ type: 'event', event, ns: this.now, ...members })
  }

  /** The same for a complete record; `size`: the bytes of its headers. */
  httpRecord(record: EventRecord, size = 0): void {
    this.#limited(record, EVENT_BYTES + size, 'events', 1)
  }

  /** Writes the rest; resolves when that is done, has failed, or takes too long. */
  async close(): Promise<void> {
    if (Object.values(this.#dropped).some((count) => count > 0))
      this.event('dropped', { reason: 'total', ...this.#dropped })
    let timer: ReturnType<typeof setInterval> | undefined
    await new Promise<void>((resolve) => {
      // Checks are counted, not milliseconds: if this process stands still, it is not the disk that is slow.
      let checks = 0
      const check = () => ++checks * CLOSE_CHECK >= CLOSE_TIMEOUT && resolve()
      timer = setInterval(check, CLOSE_CHECK)
      this.#drained = resolve
      this.#flush()
    })
    clearInterval(timer)
    this.#end()
  }

  /** Adds an entry, if there is room; otherwise it is counted as dropped. */
  #limited(entry: Entry, weight: number, kind: Dropped, count: number): void {
    if (this.#descriptor === undefined) return
    // What waits counts as well; once it is full, it stays so.
    this.#isFull ||= this.#written + this.#waiting >= this.#options.maxBytes
    if (this.#isFull) return this.#drop(kind, count, 'the maximum size')
    if (this.#waiting + weight > MAX_WAITING) return this.#drop(kind, count, 'the disk is too slow')
    this.#isDropping = false
    this.#add(entry, weight)
  }

  #drop(kind: Dropped, count: number, reason: string): void {
    this.#dropped[kind] += count
    if (this.#isDropping) return
    this.#isDropping = true
    this.event('dropped', { reason, ...this.#dropped })
  }

  #add(entry: Entry, weight: number): void {
    if (this.#descriptor === undefined) return
    this.#queue.push(entry)
    this.#weights.push(weight)
    this.#waiting += weight
    if (this.#queue.length < SLICE) return this.#schedule()
    if (this.#isSliceDue) return
    this.#isSliceDue = true
    setImmediate(() => {
      this.#isSliceDue = false
      this.#encode()
      // If entries are left, the batch is full.
      if (this.#queue.length > 0) this.#flush()
    })
  }

  #schedule(): void {
    this.#timer ??= setTimeout(() => this.#flush(), FLUSH_DELAY)
  }

  #flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#writing) return
    this.#encode()
    if (this.#filled === 0 || this.#descriptor === undefined) {
      this.#drained?.()
      return
    }
    const data = this.#batch.subarray(0, this.#filled)
    const weight = this.#encoded
    const used = this.#batch
    this.#batch = this.#spare
    // A buffer that was allocated for a large record is not kept.
    this.#spare = used.length > BATCH_BYTES ? Buffer.alloc(0) : used
    this.#filled = 0
    this.#encoded = 0
    this.#writing = true
    this.#write(data, weight)
  }

  /** Encodes the first entries of the queue, as many as the batch has room for. */
  #encode(): void {
    let count = 0
    for (const entry of this.#queue) {
      const line = entry.type === 'bytes' ? '' : encodeRecord(entry)
      const size = entry.type === 'bytes' ? encodedSize(entry) : line.length * MAX_UTF8
      if (this.#filled + size > this.#batch.length) {
        if (this.#filled > 0) break
        this.#batch = Buffer.allocUnsafeSlow(Math.max(size, BATCH_BYTES))
      }
      if (entry.type === 'bytes') {
        this.#filled = encodeBytes(entry, this.#batch, this.#filled)
      } else this.#filled += this.#batch.write(line, this.#filled)
      this.#encoded += this.#weights[count] ?? 0
      count++
    }
    this.#queue.splice(0, count)
    this.#weights.splice(0, count)
  }

  /** Writes all of `data`, which counts for `weight` bytes that wait. */
  #write(data: Buffer, weight: number): void {
    if (this.#descriptor === undefined) return
    write(this.#descriptor, data, 0, data.length, null, (error, written) => {
      if (error !== null) return this.#fail(error)
      this.#written += written
      if (written < data.length) return this.#write(data.subarray(written), weight)
      this.#writing = false
      this.#waiting -= weight
      this.#encode()
      // Less than a batch is collected for a while: each write costs about as much as forwarding a message.
      if (this.#drained !== undefined || this.#queue.length > 0) this.#flush()
      else if (this.#filled > 0) this.#schedule()
    })
  }

  #fail(error: Error): void {
    this.#end()
    this.#writing = false
    this.#options.failed(error)
    this.#drained?.()
  }

  #end(): void {
    process.off('exit', this.#flushSync)
    if (this.#descriptor === undefined) return
    try {
      closeSync(this.#descriptor)
    } catch {
      // The file system reports the errors of earlier writes here; the capture ends in any case.
    }
    this.#descriptor = undefined
    this.#queue = []
    this.#weights = []
  }
}

/**
 * Opens a new file that only its owner can read. An existing file is kept: the new one gets a number. A pipe or a device
 * is written to. Throws if another user owns or can read it.
 */
function open(path: string): { descriptor: number; path: string } {
  const pipe = openPipe(path)
  if (pipe !== undefined) return { path, descriptor: pipe }
  for (let number = 1; ; number++) {
    const name = number === 1 ? path : numbered(path, number)
    try {
      return { path: name, descriptor: openSync(name, 'ax', 0o600) }
    } catch (error) {
      const exists = error instanceof Error && 'code' in error && error.code === 'EEXIST'
      if (!exists || number === MAX_NUMBER) throw error
    }
  }
}

/** Opens a pipe or a device; undefined if there is none. What is opened is checked: the path may be replaced at any time. */
function openPipe(path: string): number | undefined {
  if (statSync(path, { throwIfNoEntry: false })?.isFile() ?? true) return undefined
  // Non-blocking: opening a pipe without a reader would block.
  const descriptor = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
  const opened = fstatSync(descriptor)
  // Such as /dev/null, or a terminal.
  if (opened.isCharacterDevice()) return descriptor
  const isOwn = opened.uid === (process.geteuid?.() ?? opened.uid)
  if (!opened.isFile() && isOwn && (opened.mode & READABLE_BY_OTHERS) === 0) return descriptor
  closeSync(descriptor)
  if (opened.isFile()) return undefined
  throw new Error(
    `${path} belongs to another user or can be read by one, and a capture contains secrets; use a pipe of your own, made with mkfifo -m 600`,
  )
}

/** `a/b.ndjson` becomes `a/b-2.ndjson`. */
function numbered(path: string, number: number): string {
  const [, start = path, extension = ''] = /^(.*[^/\\])(\.[^./\\]*)$/s.exec(path) ?? []
  return `${start}-${number}${extension}`
}

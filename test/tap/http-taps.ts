import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type Server, type Socket, connect, createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import {
  CaptureReader,
  type CaptureRecord,
  type Direction,
  type EventRecord,
  bytesOf,
} from '../../src/capture/format.js'
import { CaptureFile } from '../../src/tap/capture-file.js'
import { HttpTap, type HttpTapOptions } from '../../src/tap/http.js'

/** A tap in this process, and its capture. */
export class TestTap {
  readonly tap: HttpTap
  readonly capture: CaptureFile
  readonly path: string
  #isClosed = false

  constructor(tap: HttpTap, capture: CaptureFile, path: string) {
    this.tap = tap
    this.capture = capture
    this.path = path
  }

  get port(): number {
    return Number(new URL(this.tap.url).port)
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await this.tap.close()
    this.capture.event('exit', { code: 0 })
    await this.capture.close()
  }

  /** Closes the tap and reads the capture. */
  async records(): Promise<CaptureRecord[]> {
    await this.close()
    const reader = new CaptureReader()
    return [...reader.push(readFileSync(this.path)), ...reader.end()]
  }

  async events(...names: string[]): Promise<EventRecord[]> {
    return (await this.records()).filter(
      (record): record is EventRecord => record.type === 'event' && names.includes(record.event),
    )
  }

  async body(exchange: number, dir: Direction): Promise<Buffer> {
    return Buffer.concat(
      (await this.records()).flatMap((record) =>
        record.type === 'chunk' && record.exchange === exchange && record.dir === dir
          ? [bytesOf(record)]
          : [],
      ),
    )
  }
}

/** A tap in front of a URL; `maxBytes` and `path` are those of the capture. */
export async function tapOf(
  server: string,
  options: Partial<HttpTapOptions> & { maxBytes?: number; path?: string } = {},
): Promise<TestTap> {
  const folder = mkdtempSync(join(tmpdir(), 'ccmcp-tap-'))
  const { maxBytes = 1 << 28, path = join(folder, 'x.ndjson'), ...rest } = options
  const capture = new CaptureFile(path, { transport: 'http', maxBytes, failed: () => {} })
  const tap = await HttpTap.listen({ server: new URL(server), port: 0, capture, ...rest })
  const made = new TestTap(tap, capture, path)
  onTestFinished(async () => {
    await made.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return made
}

/** A server of bytes: `accepted` are the connections so far. */
export class ByteServer {
  readonly accepted: ByteSocket[] = []
  readonly #server: Server
  #waiting: (() => void)[] = []

  private constructor(server: Server) {
    this.#server = server
    server.on('connection', (socket) => {
      this.accepted.push(new ByteSocket(socket))
      for (const resolve of this.#waiting.splice(0)) resolve()
    })
  }

  /** `allowHalfOpen`: a client that has ended its connection still gets what is written. */
  static async listen({ allowHalfOpen = false } = {}): Promise<ByteServer> {
    const server = createServer({ noDelay: true, allowHalfOpen })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const made = new ByteServer(server)
    onTestFinished(() => {
      server.close()
      for (const { socket } of made.accepted) socket.destroy()
    })
    return made
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/mcp`
  }

  /** The connection with that number. */
  async connection(index = 0): Promise<ByteSocket> {
    while (this.accepted.length <= index)
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    return this.accepted[index] as ByteSocket // there are as many
  }
}

/** A connection, with what was received. */
export class ByteSocket {
  readonly socket: Socket
  received = Buffer.alloc(0)
  isEnded = false
  #waiting: (() => void)[] = []

  constructor(socket: Socket) {
    this.socket = socket
    const changed = () => {
      for (const resolve of this.#waiting.splice(0)) resolve()
    }
    socket.on('data', (bytes) => {
      this.received = Buffer.concat([this.received, bytes])
      changed()
    })
    for (const event of ['end', 'close', 'error'] as const)
      socket.on(event, () => {
        this.isEnded = true
        changed()
      })
  }

  static async open(port: number): Promise<ByteSocket> {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    onTestFinished(() => void socket.destroy())
    const made = new ByteSocket(socket)
    await once(socket, 'connect')
    return made
  }

  get text(): string {
    return this.received.toString('latin1')
  }

  write(text: string | Uint8Array): void {
    this.socket.write(typeof text === 'string' ? Buffer.from(text, 'latin1') : text)
  }

  async until(condition: (text: string) => boolean): Promise<string> {
    while (!condition(this.text))
      await new Promise<void>((resolve, reject) => {
        if (this.isEnded) reject(new Error(`it has ended: ${this.text.slice(0, 500)}`))
        this.#waiting.push(resolve)
      })
    return this.text
  }

  /** Resolves when the other side has closed. */
  async ended(): Promise<string> {
    while (!this.isEnded) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    return this.text
  }
}

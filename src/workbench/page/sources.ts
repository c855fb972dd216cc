import type { CaptureFile } from '../model/capture-service.js'

/** A file of the user. */
export class DroppedCapture implements CaptureFile {
  readonly #file: File

  constructor(file: File) {
    this.#file = file
  }

  get name(): string {
    return this.#file.name
  }

  get size(): number {
    return this.#file.size
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    return new Uint8Array(await this.#file.slice(start, end).arrayBuffer())
  }

  async *pieces(): AsyncGenerator<Uint8Array> {
    yield* chunksOf(this.#file.stream())
  }
}

interface Answer {
  id: number
  name: string
  size: number
  follow: boolean
}

/** The capture of the program that serves the page. */
export class ServedCapture implements CaptureFile {
  readonly #client: CaptureClient
  #answer: Answer

  private constructor(client: CaptureClient, answer: Answer) {
    this.#client = client
    this.#answer = answer
  }

  static async open(client: CaptureClient): Promise<ServedCapture> {
    return new ServedCapture(client, await client.state(''))
  }

  get name(): string {
    return this.#answer.name
  }

  get size(): number {
    return this.#answer.size
  }

  /** Whether a newer capture has replaced this one. */
  isReplaced = false

  async read(start: number, end: number): Promise<Uint8Array> {
    if (start >= end) return new Uint8Array(0)
    const response = await this.#client.bytes(this.#answer.id, start, end)
    return new Uint8Array(await response.arrayBuffer())
  }

  async *pieces(): AsyncGenerator<Uint8Array> {
    let position = 0
    for (;;) {
      const { id, size, follow } = this.#answer
      if (size > position) {
        const { body } = await this.#client.bytes(id, position, size)
        for await (const piece of chunksOf(body)) {
          position += piece.length
          yield piece
        }
      }
      if (!follow) return
      // Everything is read for now.
      yield new Uint8Array(0)
      const next = await this.#client.state(`?id=${id}&after=${position}`)
      this.isReplaced = next.id !== id
      if (this.isReplaced) return
      this.#answer = next
    }
  }
}

/** Requests captures from the program that serves the page. */
export class CaptureClient {
  readonly #origin: string
  readonly #token: string

  constructor(origin: string, token: string) {
    this.#origin = origin
    this.#token = token
  }

  async state(query: string): Promise<Answer> {
    const response = await this.#get(`/api/capture${query}`)
    return (await response.json()) as Answer // as the program answers
  }

  bytes(id: number, start: number, end: number): Promise<Response> {
    return this.#get(`/api/bytes?id=${id}`, { Range: `bytes=${start}-${end - 1}` })
  }

  async #get(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
    let response
    try {
      response = await fetch(`${this.#origin}${path}`, {
        headers: { ...headers, Authorization: `Bearer ${this.#token}` },
      })
    } catch {
      throw new Error(
        'ccmcp has ended: what was read is still shown; run it again, or open the file',
      )
    }
    if (response.status === 401)
      throw new Error(
        'The token in the address is missing or wrong: open the URL that ccmcp printed',
      )
    if (!response.ok) throw new Error((await response.text()).trim())
    return response
  }
}

async function* chunksOf(stream: ReadableStream<Uint8Array> | null): AsyncGenerator<Uint8Array> {
  const reader = stream?.getReader()
  if (reader === undefined) return
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    await reader.cancel()
  }
}

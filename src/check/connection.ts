import { type Frame, FrameParser, type Span } from '../capture/frames.js'
import { parseJson } from '../capture/json.js'
import { type IdKey, type Message, messagesOf } from '../capture/messages.js'
import type { Recording } from './recording.js'

/** What came back for a request. */
export interface Reply {
  kind: 'result' | 'error' | 'none'
  /** The result or the error object; undefined if there was no response. */
  value: unknown
  /** The bytes of the response, or of the request if there was none. */
  span: Span
  dir: 'in' | 'out'
  milliseconds: number
}

export interface RequestOptions {
  /** The id as it is written; a number that counts up unless given. */
  id?: string
  timeout?: number
  /** Over HTTP: headers in addition to, or instead of, the usual ones. */
  headers?: Readonly<Record<string, string>>
}

/** Responses that no request of the check expects, such as one with a rounded id. */
const MAX_UNMATCHED = 100
/** Maximum bytes of the server that are read. */
export const MAX_OUTPUT = 32 * 1024 * 1024

const encoder = new TextEncoder()

/** A connection of one probe. Everything that is sent and received is recorded. */
export abstract class Connection {
  readonly recording: Recording
  readonly timeout: number
  /** Responses without a request, as they were written. */
  readonly unmatched: { id: string; span: Span }[] = []
  readonly #parser = new FrameParser('out', MAX_OUTPUT)
  readonly #pending = new Map<IdKey, (message: Message | undefined, span: Span) => void>()
  /** Called with each message, and with undefined when nothing follows. */
  readonly #listeners = new Set<(message: Message | undefined) => void>()
  #nextId = 1
  #received = 0
  /** Why nothing more can be received. */
  #ended: string | undefined

  constructor(recording: Recording, timeout: number) {
    this.recording = recording
    this.timeout = timeout
  }

  /** The HTTP status (and the content type) that was received instead of the last response; always undefined on stdio. */
  get refusal(): string | undefined {
    return undefined
  }

  /** Sends one recorded message. */
  protected abstract write(text: string, headers: Readonly<Record<string, string>>): void
  /** Ends the connection and whatever belongs to it. Never rejects. */
  abstract close(): Promise<void>

  get ended(): string | undefined {
    return this.#ended
  }

  /** Sends a line as it is; returns its bytes. */
  send(text: string, headers: Readonly<Record<string, string>> = {}): Span {
    const span = this.recording.bytes('in', encoder.encode(`${text}\n`))
    this.write(text, headers)
    return span
  }

  notify(method: string, params?: object): void {
    this.send(JSON.stringify({ jsonrpc: '2.0', method, params }))
  }

  /** Sends a request; resolves with its response, or when there will be none. */
  async request(
    method: string,
    params?: object,
    { id = String(this.#nextId++), timeout = this.timeout, headers = {} }: RequestOptions = {},
  ): Promise<Reply> {
    const rest = params === undefined ? '' : `,"params":${JSON.stringify(params)}`
    const text = `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)}${rest}}`
    const key = keyOf(text)
    const started = performance.now()
    const answer = new Promise<{ message: Message | undefined; span: Span } | undefined>(
      (resolve) => {
        const timer = setTimeout(resolve, timeout, undefined)
        this.#pending.set(key, (message, span) => {
          clearTimeout(timer)
          resolve({ message, span })
        })
      },
    )
    const sent = this.send(text, headers)
    // Whoever waits on a connection that has ended would wait until the timeout.
    if (this.#ended !== undefined) this.fail(key)
    const response = await answer
    this.#pending.delete(key)
    const milliseconds = performance.now() - started
    const { message, span = sent } = response ?? {}
    if (message === undefined)
      return { kind: 'none', value: undefined, span: sent, dir: 'in', milliseconds }
    const { error, result } = message
    return error === undefined
      ? { kind: 'result', value: result?.value, span, dir: 'out', milliseconds }
      : { kind: 'error', value: error.value, span, dir: 'out', milliseconds }
  }

  /** Waits for a message that matches; false if none comes in time. */
  async waitFor(matches: (message: Message) => boolean): Promise<boolean> {
    return await new Promise((resolve) => {
      const finish = (isFound: boolean) => {
        clearTimeout(timer)
        this.#listeners.delete(listener)
        resolve(isFound)
      }
      const timer = setTimeout(finish, this.timeout, false)
      const listener = (message: Message | undefined) => {
        if (message === undefined || matches(message)) finish(message !== undefined)
      }
      this.#listeners.add(listener)
    })
  }

  /** Bytes of the server. */
  protected receive(bytes: Uint8Array): void {
    if (this.#ended !== undefined) return
    const { start } = this.recording.bytes('out', bytes)
    this.#received += bytes.length
    for (const frame of this.#parser.push(bytes, start, 0)) this.#frame(frame)
    if (this.#received <= MAX_OUTPUT && !this.recording.hasTooManyFindings) return
    this.recording.report(
      'excessive-output',
      this.recording.hasTooManyFindings ? 'too many findings' : `more than ${MAX_OUTPUT} bytes`,
    )
    this.end('the server sent too much')
    void this.close()
  }

  /** Stops waiting for the response to the request with this id. */
  abandon(id: string): void {
    this.fail(keyOf(`{"id":${id}}`))
  }

  /** A request gets no response. */
  protected fail(key: IdKey): void {
    this.#pending.get(key)?.(undefined, { start: 0, end: 0 })
  }

  /** Nothing more is received. */
  protected end(reason: string): void {
    this.#ended ??= reason
    for (const listener of this.#listeners) listener(undefined)
    for (const key of this.#pending.keys()) this.fail(key)
  }

  #frame(frame: Frame): void {
    if (frame.kind !== 'message' || frame.text === undefined) return
    const { node } = parseJson(frame.text)
    if (node === undefined) return
    for (const message of messagesOf(node, frame.text)) {
      for (const listener of this.#listeners) listener(message)
      if (message.kind === 'response') this.#response(message, frame.body)
      else if (message.kind === 'request') this.#answer(message)
    }
  }

  #response(message: Message, span: Span): void {
    const resolve = this.#pending.get(message.id?.key ?? '')
    if (resolve !== undefined) resolve(message, span)
    else if (this.unmatched.length < MAX_UNMATCHED)
      this.unmatched.push({ id: message.id?.text ?? 'null', span })
  }

  /** The check has declared no capabilities: a server may only ping. */
  #answer({ id, method }: Message): void {
    if (id === undefined) return
    const rest =
      method === 'ping'
        ? '"result":{}'
        : '"error":{"code":-32601,"message":"The client has not declared this capability"}'
    this.send(`{"jsonrpc":"2.0","id":${id.text},${rest}}`)
  }
}

/** Identifies a request, as responses do. */
export function keyOf(text: string): IdKey {
  const { node } = parseJson(text)
  const [message] = node === undefined ? [] : messagesOf(node, text)
  return message?.id?.key ?? ''
}

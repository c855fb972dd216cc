import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { type EventStore, MemoryEventStore, type StoredEvent, httpHandler } from '../../src/http.js'
import { type Server, createServer, resource } from '../../src/index.js'
import { checkServer } from '../../src/server/context.js'
import { ServerSession } from '../../src/server/session.js'
import { StreamChannel } from '../../src/transports/streams.js'
import { onStillClock } from '../clock.js'
import { POST, message, statelessRequest } from '../http/caller.js'

/* What has changed is sent when a client reads again, and not some time later: no timer fires here. */

const URIS = Array.from({ length: 200 }, (_, i) => `note:${i}-${'x'.repeat(1000)}`)
/** A stream is congested beyond a quarter. */
const UNSENT = 40_000
const TURNS = 2000

function served(): Server {
  const note = resource({ uri: 'note:{name}', name: 'note', read: () => 'text' })
  return createServer({ name: 'notes', version: '1', resources: [note] })
}

async function turns(count = 20): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise(setImmediate)
}

/** The URIs of the notifications in a text. */
const updated = (text: string) =>
  [...text.matchAll(/updated","params":\{"uri":"([^"]+)/g)].map(([, uri]) => uri)

/** Reads until all changes have arrived, for some turns of the event loop. */
async function expectAll(text: () => string): Promise<void> {
  for (let i = 0; i < TURNS && updated(text()).length < URIS.length; i++) await turns(1)
  expect(updated(text())).toEqual(URIS)
}

/** An event store, and the messages that it got. */
class Events implements EventStore {
  readonly #stored = new MemoryEventStore()
  storing: Promise<void> | undefined
  text = ''

  append(stream: string, event: StoredEvent): void | Promise<void> {
    this.text += event.frame
    this.#stored.append(stream, event)
    return this.storing
  }

  read(stream: string, after: number): readonly StoredEvent[] {
    return this.#stored.read(stream, after)
  }

  delete(stream: string): void {
    this.#stored.delete(stream)
  }
}

/** An HTTP endpoint, and the text of the stream that is open. */
class Endpoint {
  readonly server = served()
  readonly #handle
  #body: ReadableStreamDefaultReader<Uint8Array> | undefined
  text = ''

  constructor(eventStore?: EventStore) {
    this.#handle = httpHandler(this.server, {
      keepAlive: 0,
      limits: { unsentBytesPerStream: UNSENT },
      ...(eventStore === undefined ? {} : { eventStore }),
    })
  }

  send(method: string, headers: Record<string, string>, body?: string): Promise<Response> {
    const url = 'http://localhost:8080/mcp'
    return this.#handle(
      new Request(url, { method, headers, ...(body === undefined ? {} : { body }) }),
    )
  }

  open({ body }: Response): void {
    this.#body = body?.getReader()
  }

  close(): Promise<void> | undefined {
    return this.#body?.cancel()
  }

  async read(): Promise<void> {
    const decoder = new TextDecoder()
    for (;;) {
      const chunk = await this.#body?.read()
      if (chunk?.value === undefined) return
      this.text += decoder.decode(chunk.value, { stream: true })
    }
  }

  /** Opens a session that has subscribed to all. */
  async session(): Promise<Record<string, string>> {
    const params = {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'x', version: '1' },
    }
    const opened = await this.send('POST', POST, message('initialize', params, 1))
    const headers = { ...POST, 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' }
    await this.send('POST', headers, message('notifications/initialized'))
    for (const [i, uri] of URIS.entries())
      await this.send('POST', headers, message('resources/subscribe', { uri }, i + 2))
    return headers
  }

  change(): Promise<void> {
    for (const uri of URIS) this.server.updated(uri)
    return turns()
  }
}

describe('a client that reads again gets what has changed', () => {
  it('on stdio', () =>
    onStillClock(async () => {
      const [input, output] = [new PassThrough(), new PassThrough({ highWaterMark: 2000 })]
      const server = served()
      const channel = new StreamChannel({ input, output })
      void new ServerSession(checkServer(server), channel, { remote: false })
      const params = {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo: { name: 'x', version: '1' },
      }
      const messages = [message('initialize', params, 1), message('notifications/initialized')]
      for (const [i, uri] of URIS.entries())
        messages.push(message('resources/subscribe', { uri }, i + 2))
      let text = ''
      output.on('data', (chunk: Buffer) => (text += chunk.toString()))
      input.write(messages.map((each) => `${each}\n`).join(''))
      for (let i = 0; i < TURNS && !text.includes(`"id":${URIS.length + 1}`); i++) await turns(1)
      output.pause()
      for (const uri of URIS) server.updated(uri)
      await turns()
      expect(channel.congested).toBe(true)
      output.resume()
      await expectAll(() => text)
      await channel.close()
    }))

  it('on the stream of a stateless request', () =>
    onStillClock(async () => {
      const endpoint = new Endpoint()
      const notifications = { resourceSubscriptions: URIS }
      const { headers, body } = statelessRequest('subscriptions/listen', { notifications })
      endpoint.open(await endpoint.send('POST', headers as Record<string, string>, String(body)))
      await endpoint.change()
      void endpoint.read()
      await expectAll(() => endpoint.text)
      await endpoint.close()
    }))

  it('on the stream of a session', () =>
    onStillClock(async () => {
      const endpoint = new Endpoint()
      const headers = await endpoint.session()
      endpoint.open(await endpoint.send('GET', { ...headers, accept: 'text/event-stream' }))
      await endpoint.change()
      void endpoint.read()
      await expectAll(() => endpoint.text)
      await endpoint.close()
    }))

  it('in the event store, if the connection is closed', () =>
    onStillClock(async () => {
      const events = new Events()
      const endpoint = new Endpoint(events)
      const headers = await endpoint.session()
      endpoint.open(await endpoint.send('GET', { ...headers, accept: 'text/event-stream' }))
      await endpoint.change()
      expect(updated(events.text).length).toBeLessThan(URIS.length)
      await endpoint.close()
      await expectAll(() => events.text)
    }))

  it('in the event store, when that has stored what came before', () =>
    onStillClock(async () => {
      const events = new Events()
      const endpoint = new Endpoint(events)
      const headers = await endpoint.session()
      endpoint.open(await endpoint.send('GET', { ...headers, accept: 'text/event-stream' }))
      await endpoint.close()
      let store = () => {}
      events.storing = new Promise((resolve) => (store = resolve))
      await endpoint.change()
      expect(updated(events.text).length).toBeLessThan(URIS.length)
      store()
      await expectAll(() => events.text)
    }))

  it('on another connection that replaces the first', () =>
    onStillClock(async () => {
      const events = new Events()
      const endpoint = new Endpoint(events)
      const headers = { ...(await endpoint.session()), accept: 'text/event-stream' }
      endpoint.open(await endpoint.send('GET', headers))
      await endpoint.change()
      const last = updated(events.text).length
      const resumed = await endpoint.send('GET', { ...headers, 'last-event-id': `g.${last}` })
      await turns()
      expect(updated(events.text).length).toBeGreaterThan(last)
      endpoint.open(resumed)
      void endpoint.read()
      await expectAll(() => events.text)
      await endpoint.close()
    }))
})

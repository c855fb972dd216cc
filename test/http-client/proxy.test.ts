import { type AddressInfo, type Socket, createServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import { nodeRequest } from '../../src/transports/http/client/node-request.js'
import { onStillClock } from '../clock.js'
import { closing, failed } from './scripted.js'

/** A proxy that answers CONNECT with the given text, or not at all. Resolves with the connection after CONNECT. */
async function proxy(answer?: string) {
  let received: (socket: Socket) => void = () => {}
  const connected = new Promise<Socket>((resolve) => (received = resolve))
  const server = createServer((socket) => {
    closing.push(() => Promise.resolve(socket.destroy()))
    socket.on('error', () => {})
    socket.once('data', (data) => {
      expect(String(data)).toContain('CONNECT example.invalid:443')
      if (answer !== undefined) socket.write(answer)
      received(socket)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closing.push(() => new Promise((resolve) => server.close(resolve)))
  const { port } = server.address() as AddressInfo // it listens on a port
  return { connected, env: { HTTPS_PROXY: `http://127.0.0.1:${port}` } }
}

const request = (env: Record<string, string>, { signal } = new AbortController()) =>
  nodeRequest(env)({
    method: 'GET',
    url: new URL('https://example.invalid/'),
    headers: {},
    signal,
    background: false,
  })

const ended = (socket: Socket) => new Promise((resolve) => socket.once('close', resolve))

describe('a proxy', () => {
  it.each([
    ['that does not answer CONNECT', undefined],
    ['behind which the server does not answer', 'HTTP/1.1 200 OK\r\n\r\n'],
  ])('%s is disconnected when the request is aborted', async (_case, answer) => {
    const { connected, env } = await proxy(answer)
    const controller = new AbortController()
    const sent = failed(request(env, controller))
    const socket = await connected
    const closed = ended(socket)
    controller.abort()
    socket.resume()
    await closed
    expect((await sent).message).toBe('The request was aborted')
  })

  it('is not connected to for a request that is aborted already', async () => {
    const { env } = await proxy()
    const controller = new AbortController()
    controller.abort()
    expect((await failed(request(env, controller))).message).toBe('The request was aborted')
  })

  it('has thirty seconds to answer CONNECT', () =>
    onStillClock(async (pass) => {
      const { connected, env } = await proxy()
      const sent = failed(request(env))
      const closed = ended(await connected)
      await pass(30_000)
      await closed
      expect((await sent).message).toMatch(
        /^The proxy 127\.0\.0\.1:\d+ did not respond to CONNECT example\.invalid:443 within 30000 ms$/,
      )
    }))

  it('that answers CONNECT has no timer any more', () =>
    onStillClock(async (pass) => {
      const { connected, env } = await proxy('HTTP/1.1 200 OK\r\n\r\n')
      const controller = new AbortController()
      const sent = failed(request(env, controller))
      const socket = await connected
      const hello = new Promise((resolve) => socket.once('data', resolve))
      await hello
      await pass(60_000)
      expect(socket.destroyed).toBe(false)
      controller.abort()
      await sent
    }))
})

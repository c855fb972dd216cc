import type { Target } from '../../src/client.js'
import { HttpChannel } from '../../src/harness/http-channel.js'
import { listen } from '../../src/http.js'
import type { Server } from '../../src/index.js'
import { checkServer } from '../../src/server/context.js'
import { nodeRequest } from '../../src/transports/http/client/node-request.js'
import { HttpSseChannel } from '../../src/transports/http/client/http-sse-channel.js'

/** A server over HTTP, by a real port: each connection has a server that listens for it alone. */
export function httpTarget(make: () => Server): Target {
  return {
    open() {
      const server = make()
      const listening = listen(server, { port: 0 })
      return new HttpChannel({
        async fetch({ method, headers, body, signal }) {
          return await fetch((await listening).url, {
            method,
            headers,
            body,
            signal,
            ...(body === null ? {} : { duplex: 'half' }),
          })
        },
        headers: {},
        parametersOf: (tool) => checkServer(server).tools.get(tool)?.headers ?? [],
        close: async () => (await listening).close(0),
      })
    },
  }
}

/** The same over HTTP+SSE. */
export function httpSseTarget(make: () => Server): Target {
  return {
    open(report = () => {}) {
      const listening = listen(make(), { port: 0, legacySse: true })
      const send = nodeRequest({})
      const channel = new HttpSseChannel({
        url: new URL('http://127.0.0.1/sse'),
        async send(request) {
          const url = new URL(request.url)
          url.port = String((await listening).port)
          return await send({ ...request, url })
        },
        headers: {},
        maxMessage: 1_000_000,
        report,
      })
      const close = channel.close.bind(channel)
      channel.close = async () => {
        await close()
        await (await listening).close(0)
      }
      return channel
    },
  }
}

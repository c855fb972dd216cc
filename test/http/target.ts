import type { Target } from '../../src/client.js'
import { HttpChannel } from '../../src/harness/http-channel.js'
import { listen } from '../../src/http.js'
import type { Server } from '../../src/index.js'
import { checkServer } from '../../src/server/context.js'

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

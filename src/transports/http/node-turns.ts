import type { NodeRequest, NodeResponse } from './node-message.js'

/** Maximum number of pipelined requests that wait on one connection; beyond it, the connection is closed. */
const MAX_PIPELINED = 100

/**
 * Serves pipelined requests of one connection one after the other: otherwise all responses would wait in memory until
 * the first one was read.
 * https://datatracker.ietf.org/doc/html/rfc9112#section-9.3.2
 */
export function inTurn<Request extends NodeRequest, Response extends NodeResponse>(
  serve: (request: Request, response: Response) => void,
): (request: Request, response: Response) => void {
  const waiting = new WeakMap<object, number>()
  return (request, response) => {
    if (response.socket !== null) return serve(request, response)
    const { socket } = request
    const count = (waiting.get(socket) ?? 0) + 1
    if (count > MAX_PIPELINED) return void socket.destroy()
    waiting.set(socket, count)
    response.once('socket', () => {
      waiting.set(socket, (waiting.get(socket) ?? 1) - 1)
      serve(request, response)
    })
  }
}

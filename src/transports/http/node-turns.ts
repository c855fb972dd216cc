import type { NodeRequest, NodeResponse } from './node-message.js'

/** How many requests may wait behind another one on their connection. Hardly any client has even one do so. */
const MAX_WAITING = 100

/**
 * Requests that were sent over one connection without waiting for answers are served one after the other:
 * otherwise all answers would wait in memory for the first one to be read.
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
    if (count > MAX_WAITING) return void socket.destroy()
    waiting.set(socket, count)
    response.once('socket', () => {
      waiting.set(socket, (waiting.get(socket) ?? 1) - 1)
      serve(request, response)
    })
  }
}

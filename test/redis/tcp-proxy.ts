import { type Server, type Socket, connect, createServer } from 'node:net'

/**
 * - pass: forwards everything
 * - delay: forwards everything, later
 * - hold: forwards nothing, in both directions, and keeps connections open (a black hole)
 * - late: as `hold`, but requests are delivered when the mode changes, also those of connections that their client has
 *   closed meanwhile, since TCP goes on sending
 * - lose replies: forwards requests, and no replies
 * - refuse: resets connections, old and new ones
 */
type Mode = 'pass' | 'delay' | 'hold' | 'late' | 'lose replies' | 'refuse'

/** Milliseconds. */
const DELAY = 100

/** A TCP proxy whose network fails as a test tells it to. */
export class TcpProxy {
  readonly port: number
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  /** What is done when the mode `late` ends. */
  readonly #late: (() => void)[] = []
  #mode: Mode = 'pass'
  /** Number of connections so far. */
  connections = 0

  private constructor(server: Server, port: number) {
    this.#server = server
    this.port = port
  }

  static start(target: number): Promise<TcpProxy> {
    return new Promise((resolve) => {
      const server = createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1', () => {
        const { port } = server.address() as { port: number } // it listens on a port
        const proxy = new TcpProxy(server, port)
        server.on('connection', (client) => proxy.#accept(client, target))
        resolve(proxy)
      })
    })
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`
  }

  /**
   * Changes what happens from now on. What was held back is lost; the connection stays silent in that direction, since
   * TCP never delivers what follows lost bytes: a reply would be taken for that of another command.
   */
  set(mode: Mode): void {
    this.#mode = mode
    if (mode !== 'late') for (const deliver of this.#late.splice(0)) deliver()
    if (mode === 'refuse') for (const socket of this.#sockets) socket.resetAndDestroy()
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #accept(client: Socket, target: number): void {
    this.connections++
    if (this.#mode === 'refuse') {
      client.resetAndDestroy()
      return
    }
    const server = connect(target, '127.0.0.1')
    this.#forward(client, server, ['pass', 'late', 'lose replies'])
    this.#forward(server, client, ['pass'])
    client.resume()
  }

  #forward(from: Socket, to: Socket, modes: readonly Mode[]): void {
    this.#sockets.add(from)
    from.setNoDelay(true)
    let hasLost = false
    let delayed = 0
    from.on('data', (chunk) => {
      hasLost ||= this.#mode !== 'delay' && !modes.includes(this.#mode)
      if (hasLost) return
      if (this.#mode === 'late') return void this.#late.push(() => to.write(chunk))
      // Nothing overtakes what is delayed.
      if (this.#mode !== 'delay' && delayed === 0) return void to.write(chunk)
      delayed++
      setTimeout(() => {
        delayed--
        to.write(chunk)
      }, DELAY)
    })
    from.on('error', () => {})
    from.on('close', () => {
      this.#sockets.delete(from)
      if (this.#mode === 'late') this.#late.push(() => to.end())
      else to.destroy()
    })
  }
}

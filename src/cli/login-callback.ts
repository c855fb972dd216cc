import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parseUrl } from '../runtime.js'

/** The path of the redirect URI, if the user gives none. */
const PATH = '/callback'
const HOST = '127.0.0.1'

/** The web server, on this computer only, that the browser is redirected to after a login. */
export class LoginCallback {
  readonly redirectUri: string
  readonly #server: Server
  readonly #path: string
  #expected: { readonly state: string; readonly found: (callback: string) => void } | undefined
  /** The browser's request, until its page is known. */
  #waiting: ServerResponse | undefined

  private constructor(server: Server, redirectUri: string) {
    this.#server = server
    this.redirectUri = redirectUri
    this.#path = new URL(redirectUri).pathname
    server.on('request', (request, response) => this.#receive(request, response))
  }

  /** Listens at a redirect URI; without one, at any port, or at that of `previous` if it is free. */
  static async listen(given: string | undefined, previous?: string): Promise<LoginCallback> {
    if (given !== undefined) {
      const { hostname, port } = new URL(given)
      const server = await listen(port === '' ? 80 : Number(port), hostname.replace(/^\[|\]$/g, ''))
      return new LoginCallback(server, given)
    }
    const port = isOurs(previous) ? Number(new URL(previous).port) : 0
    const server = await listen(port, HOST).catch(() => listen(0, HOST))
    // Its address is an object: it listens on a port.
    const address = server.address() as AddressInfo
    return new LoginCallback(server, `http://${HOST}:${address.port}${PATH}`)
  }

  /**
   * Resolves to the callback with a state. Other requests do not end the waiting: any web page can send them. A server
   * that wants more scopes leads to a second login.
   */
  wait(state: string, signal: AbortSignal): Promise<string> {
    if (this.#waiting !== undefined)
      void respond(
        this.#waiting,
        200,
        'One more step',
        'The server requires more access. Continue on the page that has just opened.',
      )
    this.#waiting = undefined
    return new Promise((resolve, reject) => {
      const abort = () => reject(signal.reason as Error) // that of a timeout or an interrupt
      if (signal.aborted) return abort()
      signal.addEventListener('abort', abort, { once: true })
      this.#expected = { state, found: resolve }
    })
  }

  /** Takes a callback that the user has typed. */
  offer(text: string): boolean {
    const callback = text.trim()
    if (this.#expected === undefined) return false
    if (parseUrl(callback)?.searchParams.get('state') !== this.#expected.state) return false
    this.#expected.found(callback)
    return true
  }

  /** Shows the outcome in the browser, and stops listening. */
  async close(title: string, text: string): Promise<void> {
    const response = this.#waiting
    if (response !== undefined) await respond(response, 200, title, text)
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve())
      this.#server.closeAllConnections()
    })
  }

  #receive(request: IncomingMessage, response: ServerResponse): void {
    const { method, url: target = '' } = request
    // Not every target can be parsed as a URL: any web page can send a request for `//`.
    if (method !== 'GET' || target.split('?', 1)[0] !== this.#path)
      return void respond(response, 404, 'Not found', 'There is nothing here.')
    const callback = new URL(`${new URL(this.redirectUri).origin}${target}`)
    const matches = callback.searchParams.get('state') === this.#expected?.state
    if (!matches || this.#waiting !== undefined)
      return void respond(
        response,
        400,
        'Not this login',
        'This page belongs to another login, or was opened twice. Look at the terminal.',
      )
    this.#waiting = response
    this.#expected?.found(callback.href)
  }
}

function isOurs(previous: string | undefined): previous is string {
  return previous !== undefined && previous.startsWith(`http://${HOST}:`) && previous.endsWith(PATH)
}

function listen(port: number, host: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer({ requestTimeout: 10_000, maxHeaderSize: 65_536 })
    server.once('error', reject)
    server.listen(port, host, () => resolve(server))
  })
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
}

function respond(
  response: ServerResponse,
  status: number,
  title: string,
  text: string,
): Promise<void> {
  const escape = (raw: string) => raw.replaceAll(/[&<>"]/g, (found) => ESCAPES[found] ?? '')
  const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escape(title)}</title>
<style>body { font: 1.1rem/1.5 system-ui, sans-serif; max-width: 34rem; margin: 15vh auto; padding: 0 1rem }</style>
<h1>${escape(title)}</h1>
<p>${escape(text)}</p>
</html>
`
  response.writeHead(status, {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'",
    'cache-control': 'no-store',
    // The URL has a code.
    'referrer-policy': 'no-referrer',
    connection: 'close',
  })
  return new Promise((resolve) => {
    // The browser may have gone away already.
    if (response.destroyed) return resolve()
    response.on('close', resolve)
    response.end(page)
  })
}

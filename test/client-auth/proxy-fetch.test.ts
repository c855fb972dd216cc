import { type IncomingMessage, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { isExposed } from '../../src/cli/stored-login.js'
import { VERSION } from '../../src/version.js'
import { nodeFetch } from '../../src/transports/http/client/node-fetch.js'

describe('fetch with the proxies of the environment', () => {
  const server = createServer()
  afterEach(() => {
    server.removeAllListeners('request')
    server.close()
    server.closeAllConnections()
  })

  async function listen(): Promise<number> {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return (server.address() as AddressInfo).port // listens on a port
  }

  it('sends http without a proxy, and returns the response', async () => {
    const seen: string[] = []
    server.on('request', (request: IncomingMessage, response) => {
      let body = ''
      request.on('data', (chunk: Buffer) => (body += chunk.toString()))
      request.on('end', () => {
        seen.push(`${request.method} ${request.url} ${body} ${request.headers['user-agent']}`)
        response.writeHead(400, { 'content-type': 'application/json', 'dpop-nonce': 'n' })
        response.end('{"error":"x"}')
      })
    })
    const port = await listen()
    const env = { HTTP_PROXY: 'http://127.0.0.1:1' }
    const body = new URLSearchParams({ a: 'b c' })
    const url = `http://127.0.0.1:${port}/token`
    const response = await nodeFetch(env)(url, { method: 'POST', body })
    expect(response.status).toBe(400)
    expect(response.headers.get('dpop-nonce')).toBe('n')
    expect(await response.json()).toEqual({ error: 'x' })
    await nodeFetch(env)(url, { headers: { 'User-Agent': 'mine' } })
    expect(seen).toEqual([`POST /token a=b+c ccmcp/${VERSION}`, 'GET /token  mine'])
  })

  it('sends https through HTTPS_PROXY', async () => {
    const connected = new Promise<string | undefined>((resolve) => {
      server.on('connect', ({ url }: IncomingMessage, socket) => {
        socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
        resolve(url)
      })
    })
    const fetch = nodeFetch({ HTTPS_PROXY: `http://127.0.0.1:${await listen()}` })
    await expect(fetch('https://as.example/token')).rejects.toThrow()
    expect(await connected).toBe('as.example:443')
  })

  it('knows where a token would go to a proxy unencrypted', () => {
    const env = { HTTP_PROXY: 'http://proxy.example', HTTPS_PROXY: 'http://proxy.example' }
    expect(isExposed(new URL('http://host.example/mcp'), env)).toBe(true)
    expect(isExposed(new URL('https://host.example/mcp'), env)).toBe(false)
  })
})

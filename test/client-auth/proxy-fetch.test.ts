import { type IncomingMessage, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { proxyFetch } from '../../src/cli/proxy-fetch.js'

describe('fetch with the proxies of the environment', () => {
  const server = createServer()
  afterEach(() => {
    server.removeAllListeners('request')
    server.close()
    server.closeAllConnections()
  })

  it('sends through HTTP_PROXY, and returns the response', async () => {
    const seen: string[] = []
    server.on('request', (request: IncomingMessage, response) => {
      let body = ''
      request.on('data', (chunk: Buffer) => (body += chunk.toString()))
      request.on('end', () => {
        seen.push(`${request.method} ${request.url} ${body}`)
        response.writeHead(400, { 'content-type': 'application/json', 'dpop-nonce': 'n' })
        response.end('{"error":"x"}')
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo // listens on a port
    const fetch = proxyFetch({ HTTP_PROXY: `http://127.0.0.1:${port}`, NO_PROXY: '' })
    const body = new URLSearchParams({ a: 'b c' })
    const response = await fetch('http://as.example/token', { method: 'POST', body })
    expect(response.status).toBe(400)
    expect(response.headers.get('dpop-nonce')).toBe('n')
    expect(await response.json()).toEqual({ error: 'x' })
    expect(seen).toEqual(['POST http://as.example/token a=b+c'])
  })
})

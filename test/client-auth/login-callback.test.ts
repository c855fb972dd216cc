import { once } from 'node:events'
import { type Socket, connect } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { LoginCallback } from '../../src/cli/login-callback.js'

describe('the web server that the browser is redirected to', () => {
  let callback: LoginCallback
  let socket: Socket
  beforeEach(async () => {
    callback = await LoginCallback.listen(undefined)
    socket = connect(Number(new URL(callback.redirectUri).port), '127.0.0.1')
  })
  afterEach(() => socket.destroy())
  const { signal } = new AbortController()

  it.each([
    '//',
    '//evil.example/callback?state=S',
    'http://[/callback',
    'http://evil.example/callback?state=S',
    '*',
    '/callback/../callback?state=S',
    '/other?state=S',
  ])('has nothing at %s', async (target) => {
    let found = false
    void callback.wait('S', signal).then(() => (found = true))
    socket.write(`GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`)
    const [data] = (await once(socket, 'data')) as [Buffer]
    expect(data.toString()).toMatch(/^HTTP\/1\.1 404 /)
    await callback.close('Done', '')
    expect(found).toBe(false)
  })

  it.each(['HEAD', 'POST', 'OPTIONS'])('does not take a callback by %s', async (method) => {
    let found = false
    void callback.wait('S', signal).then(() => (found = true))
    socket.write(`${method} /callback?state=S HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n`)
    const [data] = (await once(socket, 'data')) as [Buffer]
    expect(data.toString()).toMatch(/^HTTP\/1\.1 404 /)
    await callback.close('Done', '')
    expect(found).toBe(false)
  })

  it('ends although the browser has gone away', async () => {
    const waiting = callback.wait('S', signal)
    socket.write('GET /callback?state=S&code=1 HTTP/1.1\r\nHost: x\r\n\r\n')
    expect(await waiting).toBe(`${callback.redirectUri}?state=S&code=1`)
    socket.destroy()
    // A second connection is accepted after the end of the first was noticed.
    const response = await fetch(new URL('/other', callback.redirectUri))
    expect(response.status).toBe(404)
    await callback.close('Logged in', '')
  })

  it('takes the callback of a second login, and ends the page of the first', async () => {
    const first = fetch(`${callback.redirectUri}?state=S&code=1`)
    await callback.wait('S', signal)
    const waiting = callback.wait('T', signal)
    expect(await (await first).text()).toContain('<h1>One more step</h1>')
    const second = fetch(`${callback.redirectUri}?state=T&code=2`)
    expect(await waiting).toBe(`${callback.redirectUri}?state=T&code=2`)
    await callback.close('Logged in', '')
    expect(await (await second).text()).toContain('<h1>Logged in</h1>')
  })

  it('ends although a request is never finished', async () => {
    socket.write('GET /callback?state=S HTTP/1.1\r\nHost:')
    await once(socket, 'connect')
    await callback.close('Done', '')
  })

  it('escapes what it shows', async () => {
    const waiting = callback.wait('S', signal)
    const page = fetch(`${callback.redirectUri}?state=S`)
    await waiting
    await callback.close('<script>', '"><img src=x onerror=alert(1)>&')
    const response = await page
    const text = await response.text()
    expect(text).not.toMatch(/<script|<img/)
    expect(response.headers.get('content-security-policy')).toContain("default-src 'none'")
  })
})

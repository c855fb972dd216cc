import { describe, expect, it } from 'vitest'
import type { HttpContext } from '../../src/transports/http/http-context.js'
import { ForwardSignature, endToEnd } from '../../src/transports/http/forwarding.js'

/* What a process passes on of a request, and by what another one recognizes it. */

describe('headers that are passed on', () => {
  it('are not those of the connection', () => {
    const headers: [string, string][] = [
      ['Authorization', 'Bearer x'],
      ['Connection', 'close, X-Hop ,x-other'],
      ['x-hop', '1'],
      ['X-Other', '1'],
      ['keep-alive', 'timeout=5'],
      ['transfer-encoding', 'chunked'],
      ['te', 'trailers'],
      ['upgrade', 'h2c'],
      ['proxy-authorization', 'Basic x'],
      ['content-length', '5'],
      ['expect', '100-continue'],
      ['mcp-session-id', 'id'],
    ]
    expect(endToEnd(headers)).toEqual([
      ['authorization', 'Bearer x'],
      ['mcp-session-id', 'id'],
    ])
  })
})

describe('the signature of a request', () => {
  const request = (given: Record<string, string>, method = 'POST', target = '/mcp?a=1') =>
    ({ method, target, header: (name: string) => given[name] }) as unknown as HttpContext // all that is read of it
  const session = { 'mcp-session-id': 'the id' }
  const to = 'a-process'

  it('is valid for this request, this session and this process only', async () => {
    const signature = new ForwardSignature('k'.repeat(32))
    const value = await signature.sign(request(session), to)
    const signed = { ...session, 'ccmcp-forwarded': value }
    expect(await signature.verify(request(signed), to)).toBe(true)
    expect(await signature.verify(request(signed, 'DELETE'), to)).toBe(false)
    expect(await signature.verify(request(signed, 'POST', '/mcp?a=2'), to)).toBe(false)
    expect(await signature.verify(request({ ...signed, 'mcp-session-id': 'x' }), to)).toBe(false)
    expect(await signature.verify(request(signed), 'another-process')).toBe(false)
    expect(await new ForwardSignature('j'.repeat(32)).verify(request(signed), to)).toBe(false)
  })

  it('is invalid where it is not one', async () => {
    const signature = new ForwardSignature('k'.repeat(32))
    for (const value of ['', to, `${to}.`, `${to}.${'A'.repeat(43)}`, `${to}.${'é'.repeat(43)}`])
      expect(await signature.verify(request({ 'ccmcp-forwarded': value }), to)).toBe(false)
    expect(await signature.verify(request({}), to)).toBe(false)
  })
})

import { describe, expect, it } from 'vitest'
import { isAddress, isLoopback } from '../../src/auth/loopback.js'
import { listen, oauth } from '../../src/http.js'
import { createServer } from '../../src/index.js'
import { POST, message, send, serving } from './caller.js'

const LOCAL = [
  'localhost',
  'LOCALHOST',
  '127.0.0.1',
  '127.0.0.2',
  '127.255.255.255',
  '::1',
  '[::1]',
  '0:0:0:0:0:0:0:1',
  '[0000::0001]',
  '::ffff:127.0.0.1',
  '[::ffff:127.1.2.3]',
  '::FFFF:7F00:1',
]
const REMOTE = [
  '',
  '127.0.0.999',
  '127.0.0.256',
  '127.0.0',
  '127.1',
  '127.0.0.1.1',
  '127.0.0.01',
  '0127.0.0.1',
  '0x7f.0.0.1',
  '127.0.0.1 ',
  '127.0.0.-1',
  '127.0.0.1e0',
  '128.0.0.1',
  '0.0.0.0',
  '10.0.0.1',
  '::',
  '::2',
  '[::1',
  '::1]',
  '[[::1]]',
  '::1%lo',
  '::ffff:128.0.0.1',
  '::127.0.0.1',
  '::ffff:127.0.0.999',
  'localhost.example.com',
  '127.0.0.1.example.com',
  'localhost:80',
]

describe('isLoopback', () => {
  it.each(LOCAL)('is true for %j', (host) => {
    expect(isLoopback(host)).toBe(true)
  })

  it.each(REMOTE)('is false for %j', (host) => {
    expect(isLoopback(host)).toBe(false)
  })

  it('isAddress accepts only well-formed addresses', () => {
    expect(['10.1.2.3', '[fe80::1]', '::1', '127.0.0.1'].map(isAddress)).toEqual([
      true,
      true,
      true,
      true,
    ])
    expect(['10.1.2.300', 'a.b.c.d', '[::g]', 'cafe', 'localhost', ''].map(isAddress)).toEqual([
      false,
      false,
      false,
      false,
      false,
      false,
    ])
  })

  it('is used by listen, the Host check and oauth', async () => {
    const server = createServer({ name: 's', version: '1' })
    await expect(listen(server, { host: '127.0.0.999', port: 0 })).rejects.toThrow(
      'allowUnauthenticated',
    )
    await serving(server, {}, async ({ url }) => {
      const { port } = new URL(url)
      const status = async (host: string) =>
        (
          await send(url, {
            method: 'POST',
            headers: { ...POST, host: `${host}:${port}` },
            body: message('ping', {}, 1),
          })
        ).status
      expect(await status('127.0.0.999')).toBe(403)
      expect(await status('[::ffff:127.0.0.1]')).not.toBe(403)
    })
    const resource = 'https://mcp.example.com/mcp'
    expect(() => oauth({ resource, issuer: 'http://[::ffff:127.0.0.1]:1' })).not.toThrow()
    expect(() => oauth({ resource, issuer: 'http://127.0.0.1.example.com' })).toThrow(
      'must be an https URL',
    )
  })
})

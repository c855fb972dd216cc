import { describe, expect, it } from 'vitest'
import { failed, json, peerTo, result, scripted } from './scripted.js'

/* Redirects are followed within the origin. */

describe('redirects', () => {
  it.each([
    [307, '/other'],
    [308, 'other'],
  ])('%i within the origin is followed: %s', async (status, location) => {
    const { url, received } = await scripted(({ path, message }, response) =>
      path === '/other'
        ? json(response, 200, result(message.id))
        : void response.writeHead(status, { location }).end(),
    )
    const { peer } = await peerTo(url, { open: false })
    expect(await peer.request('x', { a: 1 })).toEqual({})
    expect(received.map(({ path, message }) => [path, message.params])).toEqual([
      ['/mcp', { a: 1 }],
      ['/other', { a: 1 }],
    ])
  })

  it.each([
    ['to another origin', 307, 'http://localhost:1/mcp', 'another origin'],
    ['to a file', 307, 'file:///etc/passwd', 'another origin'],
    ['that would turn POST into GET', 302, '/other', 'become a GET'],
    ['without a place', 307, '', 'Location'],
    ['in circles', 307, '/mcp', 'more than 5 times'],
  ])('%s are refused', async (_case, status, location, words) => {
    const { url } = await scripted(
      (_received, response) =>
        void response.writeHead(status, location === '' ? {} : { location }).end(),
    )
    const { peer } = await peerTo(url, { open: false })
    expect((await failed(peer.request('x'))).message).toContain(words)
  })
})

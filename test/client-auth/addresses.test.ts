import { describe, expect, it } from 'vitest'
import { isPrivateHost } from '../../src/client/auth/addresses.js'

/* Each range of private addresses by its first and its last address, and the public ones beside it. */

type Range = [first: string, last: string, before: string | undefined, after: string | undefined]

const IPV4: Range[] = [
  ['0.0.0.0', '0.255.255.255', undefined, '1.0.0.0'],
  ['10.0.0.0', '10.255.255.255', '9.255.255.255', '11.0.0.0'],
  ['100.64.0.0', '100.127.255.255', '100.63.255.255', '100.128.0.0'],
  ['127.0.0.0', '127.255.255.255', '126.255.255.255', '128.0.0.0'],
  ['169.254.0.0', '169.254.255.255', '169.253.255.255', '169.255.0.0'],
  ['172.16.0.0', '172.31.255.255', '172.15.255.255', '172.32.0.0'],
  ['192.0.0.0', '192.0.0.255', '191.255.255.255', '192.0.1.0'],
  ['192.168.0.0', '192.168.255.255', '192.167.255.255', '192.169.0.0'],
  ['198.18.0.0', '198.19.255.255', '198.17.255.255', '198.20.0.0'],
  ['224.0.0.0', '255.255.255.255', '223.255.255.255', undefined],
]

/** The addresses of these networks contain an IPv4 address at their end. */
const EMBEDDING: [name: string, embed: (hex: [string, string]) => string][] = [
  ['IPv4-compatible', ([high, low]) => `::${high}:${low}`],
  ['IPv4-mapped', ([high, low]) => `::ffff:${high}:${low}`],
  ['SIIT', ([high, low]) => `::ffff:0:${high}:${low}`],
  ['NAT64', ([high, low]) => `64:ff9b::${high}:${low}`],
  ['6to4', ([high, low]) => `2002:${high}:${low}::1`],
  ['Teredo, of the server', ([high, low]) => `2001:0:${high}:${low}:0:1:f7f7:f7f7`],
  [
    'Teredo, of the client',
    ([high, low]) => `2001:0:808:808:0:1:${inverted(high)}:${inverted(low)}`,
  ],
]

const inverted = (hex: string) => (Number.parseInt(hex, 16) ^ 0xffff).toString(16)

function hexOf(address: string): [string, string] {
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number)
  return [((a << 8) | b).toString(16), ((c << 8) | d).toString(16)]
}

const MAX = 'ffff:ffff:ffff:ffff:ffff:ffff:ffff'
const IPV6: Range[] = [
  ['::', '::', undefined, '::8.8.8.8'],
  ['::1', '::1', undefined, '::8.8.8.8'],
  ['fc00::', `fdff:${MAX}`, `fbff:${MAX}`, 'fe00::'],
  // Link-local and site-local.
  ['fe80::', `feff:${MAX}`, `fe7f:${MAX}`, undefined],
  ['ff00::', `ffff:${MAX}`, undefined, undefined],
  [
    '64:ff9b:1::',
    '64:ff9b:1:ffff:ffff:ffff:ffff:ffff',
    '64:ff9b:0:ffff:ffff:ffff:808:808',
    '64:ff9b:2::808:808',
  ],
]

const rows = (ranges: readonly Range[]) =>
  ranges.flatMap(([first, last, before, after]): [string, boolean][] => [
    [first, true],
    [last, true],
    ...[before, after].flatMap((each): [string, boolean][] =>
      each === undefined ? [] : [[each, false]],
    ),
  ])

describe('an IPv4 address', () => {
  it.each(rows(IPV4))('%s is private: %s', (address, isPrivate) => {
    expect(isPrivateHost(address)).toBe(isPrivate)
  })
})

describe.each(EMBEDDING)('an IPv6 address that contains an IPv4 address: %s', (_name, embed) => {
  it.each(rows(IPV4))('%s is private: %s', (address, isPrivate) => {
    const embedded = embed(hexOf(address))
    expect([embedded, isPrivateHost(embedded)]).toEqual([embedded, isPrivate])
    expect(isPrivateHost(`[${embedded}]`)).toBe(isPrivate)
  })
})

describe('an IPv6 address', () => {
  it.each(rows(IPV6))('%s is private: %s', (address, isPrivate) => {
    expect(isPrivateHost(address)).toBe(isPrivate)
  })

  it.each([
    ['fe80::1%eth0', true],
    ['64:ff9b:1::808:808', true],
    ['2001:db8::1', false],
    ['2606:4700::1111', false],
    // Not SIIT, NAT64, 6to4 or Teredo.
    ['::ffff:1:a00:1', false],
    ['::2:0:a00:1', false],
    ['::1:ffff:0:a00:1', false],
    ['1::ffff:0:a00:1', false],
    ['64:ff9c::a00:1', false],
    ['65:ff9b::a00:1', false],
    ['2003:a00:1::1', false],
    ['2001:1:a00:1::f5ff:fffe', false],
  ])('%s is private: %s', (address, isPrivate) => {
    expect(isPrivateHost(address)).toBe(isPrivate)
  })
})

describe('a name', () => {
  it.each([
    ['localhost', true],
    ['LOCALHOST.', true],
    ['a.localhost', true],
    ['alocalhost', false],
    ['localhost.example', false],
    ['10.0.0.1.example', false],
    ['example.com', false],
  ])('%s is private: %s', (name, isPrivate) => {
    expect(isPrivateHost(name)).toBe(isPrivate)
  })
})

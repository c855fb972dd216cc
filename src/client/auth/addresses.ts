import { isAddress, isLoopback } from '../../auth/loopback.js'

/** Whether a host is an address, or a name of the local computer, that the public Internet cannot reach. */
export function isPrivateHost(hostname: string): boolean {
  const host = hostname.toLowerCase().replace(/\.$/, '')
  if (isLoopback(host) || host.endsWith('.localhost')) return true
  // A link-local address may have a zone.
  const [bare = ''] = (host.startsWith('[') ? host.slice(1, -1) : host).split('%')
  if (!isAddress(bare)) return false
  return bare.includes(':') ? isPrivateIpv6(bare) : isPrivateIpv4(bare.split('.').map(Number))
}

/** RFC 6890 and multicast. */
function isPrivateIpv4([a = 0, b = 0, c = 0]: readonly number[]): boolean {
  return (
    a === 0 ||
    a === 10 ||
    a === 127 ||
    (a === 100 && b >= 64 && b < 128) ||
    (a === 169 && b === 254) ||
    (a === 172 && b >= 16 && b < 32) ||
    (a === 192 && b === 0 && c === 0) ||
    (a === 192 && b === 168) ||
    (a === 198 && (b === 18 || b === 19)) ||
    a >= 224
  )
}

function isPrivateIpv6(address: string): boolean {
  const groups = groupsOf(address)
  const [first = 0] = groups
  const [high = 0, low = 0] = groups.slice(6)
  const embedded = [high >> 8, high & 255, low >> 8, low & 255]
  // The unspecified address, loopback, and IPv4 addresses in the forms `::ffff:a.b.c.d` and `::a.b.c.d`.
  if (groups.slice(0, 5).every((group) => group === 0)) return isPrivateIpv4(embedded)
  // SIIT: `::ffff:0:a.b.c.d`.
  if (groups.slice(0, 4).every((group) => group === 0) && groups[4] === 0xffff && groups[5] === 0)
    return isPrivateIpv4(embedded)
  // NAT64: `64:ff9b::a.b.c.d`; `64:ff9b:1::/48` is for use within a network.
  if (first === 0x64 && groups[1] === 0xff9b) return groups[2] === 1 || isPrivateIpv4(embedded)
  // Teredo has the IPv4 address of its server, and that of the client inverted.
  if (first === 0x2001 && groups[1] === 0) {
    const [, , one = 0, two = 0] = groups
    const client = embedded.map((byte) => byte ^ 255)
    return isPrivateIpv4(client) || isPrivateIpv4([one >> 8, one & 255, two >> 8])
  }
  // 6to4 has the IPv4 address after its prefix.
  if (first === 0x2002) {
    const [, one = 0, two = 0] = groups
    return isPrivateIpv4([one >> 8, one & 255, two >> 8])
  }
  // Unique local, link-local, site-local and multicast addresses.
  return (first & 0xfe00) === 0xfc00 || (first & 0xff80) === 0xfe80 || (first & 0xff00) === 0xff00
}

/** The eight numbers of an address; the URL parser writes embedded IPv4 addresses in hexadecimal. */
function groupsOf(address: string): number[] {
  const canonical = new URL(`http://[${address}]/`).hostname.slice(1, -1)
  const [head = '', tail] = canonical.split('::')
  const numbers = (text: string) =>
    text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16))
  const [start, end] = [numbers(head), numbers(tail ?? '')]
  const zeros = Array.from({ length: 8 - start.length - end.length }, () => 0)
  return [...start, ...zeros, ...end]
}

/** Whether a token or a code may be sent to a URL: only over https, or within the computer. */
export function isSecure(url: URL): boolean {
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname))
}

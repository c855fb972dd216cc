import { parseUrl } from '../runtime.js'

/** Whether a host, as an address or as in a URL, is `localhost` or a loopback address. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase()
  if (name === 'localhost' || octetsOf(name)?.[0] === '127') return true
  const address = ipv6Of(name)
  // An IPv4-mapped IPv6 address has two hexadecimal groups: 127.0.0.1 is 7f00:1.
  return address === '::1' || (address !== undefined && /^::ffff:7f[\da-f]{2}:/.test(address))
}

/** Whether a host is an IP address, and not a name. */
export function isAddress(host: string): boolean {
  return octetsOf(host) !== undefined || ipv6Of(host.toLowerCase()) !== undefined
}

/** Four numbers up to 255, without leading zeros, which some parsers read as octal. */
function octetsOf(host: string): string[] | undefined {
  const octets = host.split('.')
  return octets.length === 4 &&
    octets.every((octet) => /^(?:0|[1-9]\d{0,2})$/.test(octet) && Number(octet) < 256)
    ? octets
    : undefined
}

/** The shortest form of an IPv6 address; undefined if it is not one. */
function ipv6Of(host: string): string | undefined {
  const bare = host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host
  const url = /^[\da-f:.]+$/.test(bare) ? parseUrl(`http://[${bare}]/`) : undefined
  return url?.hostname.slice(1, -1)
}

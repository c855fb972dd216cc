/** Whether a host, as an address or as it stands in a URL, is this machine itself: it cannot be pointed elsewhere. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase()
  if (name === 'localhost' || octetsOf(name)?.[0] === '127') return true
  const address = ipv6Of(name)
  // An IPv4 address within an IPv6 address is written as two hexadecimal groups: 127.0.0.1 is 7f00:1.
  return address === '::1' || (address !== undefined && /^::ffff:7f[\da-f]{2}:/.test(address))
}

/** Whether a host is an address, and not a name that somebody can point anywhere. */
export function isAddress(host: string): boolean {
  return octetsOf(host) !== undefined || ipv6Of(host.toLowerCase()) !== undefined
}

/** Four numbers up to 255, without leading zeros, which some would take for octal numbers. */
function octetsOf(host: string): string[] | undefined {
  const octets = host.split('.')
  return octets.length === 4 &&
    octets.every((octet) => /^(?:0|[1-9]\d{0,2})$/.test(octet) && Number(octet) < 256)
    ? octets
    : undefined
}

/** In its shortest form; undefined where it is none. */
function ipv6Of(host: string): string | undefined {
  const bare = host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host
  const url = `http://[${bare}]/`
  return /^[\da-f:.]+$/.test(bare) && URL.canParse(url)
    ? new URL(url).hostname.slice(1, -1)
    : undefined
}

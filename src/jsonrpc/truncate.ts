/** How many characters of a peer's text an error message or a log line repeats. */
const LENGTH = 200

/**
 * Text of a peer as it may stand in an error message or a log line: at most `length` characters,
 * never half of a surrogate pair, and the full length where something is left out.
 */
export function truncate(text: string, length = LENGTH): string {
  if (text.length <= length) return text
  const last = text.charCodeAt(length - 1)
  const end = last >= 0xd800 && last <= 0xdbff ? length - 1 : length
  return `${text.slice(0, end)}… (${text.length} characters)`
}

/** Any JSON value of a peer, written as JSON. */
export function truncateJson(value: unknown, length = LENGTH): string {
  // A long string is cut first: to write all of it as JSON would cost as much as the message did.
  const short = typeof value === 'string' && value.length > length ? truncate(value, length) : value
  return truncate(JSON.stringify(short) ?? 'undefined', 2 * length)
}

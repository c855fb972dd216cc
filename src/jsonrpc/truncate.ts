/** Maximum characters of received text that an error message or a log line repeats. */
const LENGTH = 200

/**
 * Received text for an error message or a log line: at most `length` characters, never half a surrogate pair, and the
 * original length if something was omitted.
 */
export function truncate(text: string, length = LENGTH): string {
  if (text.length <= length) return text
  const last = text.charCodeAt(length - 1)
  const end = last >= 0xd800 && last <= 0xdbff ? length - 1 : length
  return `${text.slice(0, end)}… (${text.length} characters)`
}

/** A received JSON value as truncated JSON. */
export function truncateJson(value: unknown, length = LENGTH): string {
  // Truncated before it is serialized: serializing a long string costs as much as parsing the message did.
  const short = typeof value === 'string' && value.length > length ? truncate(value, length) : value
  return truncate(JSON.stringify(short) ?? 'undefined', 2 * length)
}

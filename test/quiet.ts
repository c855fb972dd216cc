/*
 * Text written to stderr during a test, mostly by the logs of servers, goes to the
 * console of vitest, which shows it only if that test fails.
 */

/** Maximum length of a line. */
const MAX_LINE = 2_000

process.stderr.write = (
  chunk: string | Uint8Array,
  encoding?: unknown,
  callback?: unknown,
): boolean => {
  const text = typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString()
  console.error(text.length > MAX_LINE ? `${text.slice(0, MAX_LINE)}…` : text.trimEnd())
  const done = typeof encoding === 'function' ? encoding : callback
  if (typeof done === 'function') process.nextTick(done)
  return true
}

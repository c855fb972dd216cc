// @ts-check
import { RpcError } from 'ccmcp'

const MINUTE = 60_000
/** Callers that are counted at a time. Beyond it, the one whose minute began first is forgotten. */
const MAX_CALLERS = 10_000

/**
 * Limits the requests per minute of each principal. Requests without one, as on stdio and over HTTP without `auth`, are
 * counted together: the name of a client is no identity, since the client chooses it.
 * @param {number} perMinute
 * @param {() => number} [now] milliseconds of a clock that is never set back
 * @returns {import('ccmcp').Middleware}
 */
export const rateLimit = (perMinute, now = () => performance.now()) => {
  /** The current minute of each caller, in the order in which they began. @type {Map<string, { count: number, end: number }>} */
  const minutes = new Map()
  return (call, next) => {
    const caller = call.client.principal?.id ?? ''
    const time = now()
    let minute = minutes.get(caller)
    if (minute === undefined || minute.end <= time) {
      minutes.delete(caller)
      for (const [other, { end }] of minutes) {
        if (end > time && minutes.size < MAX_CALLERS) break
        minutes.delete(other)
      }
      minute = { count: 0, end: time + MINUTE }
      minutes.set(caller, minute)
    }
    if (++minute.count <= perMinute) return next()
    const seconds = Math.ceil((minute.end - time) / 1000)
    throw new RpcError(429, `Too many requests: try again in ${seconds} s`, { retryAfter: seconds })
  }
}

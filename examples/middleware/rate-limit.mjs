// @ts-check
import { RpcError } from 'ccmcp'

/**
 * Limits the requests per minute of each caller.
 * @param {number} perMinute
 * @param {() => number} [now]
 * @returns {import('ccmcp').Middleware}
 */
export const rateLimit = (perMinute, now = Date.now) => {
  /** @type {Map<string, { count: number, until: number }>} */
  const callers = new Map()
  return (call, next) => {
    const who = call.client.principal?.id ?? call.client.info?.name ?? ''
    let window = callers.get(who)
    if (window === undefined || window.until <= now()) {
      for (const [each, { until }] of callers) if (until <= now()) callers.delete(each)
      window = { count: 0, until: now() + 60_000 }
      callers.set(who, window)
    }
    if (++window.count <= perMinute) return next()
    const seconds = Math.ceil((window.until - now()) / 1000)
    throw new RpcError(429, `Too many requests: try again in ${seconds} s`, { retryAfter: seconds })
  }
}

// @ts-check

/**
 * Measures the duration of each request, including failed ones.
 * @param {(method: string, milliseconds: number) => void} record
 * @returns {import('ccmcp').Middleware}
 */
export const timing = (record) => async (call, next) => {
  const begin = performance.now()
  try {
    return await next()
  } finally {
    record(call.method, performance.now() - begin)
  }
}

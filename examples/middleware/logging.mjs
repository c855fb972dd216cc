// @ts-check

/**
 * Logs each request: method, caller and outcome.
 * @param {(line: string) => void} write
 * @returns {import('ccmcp').Middleware}
 */
export const logging = (write) => async (call, next) => {
  const what = `${call.method} ${call.id} of ${call.client.info?.name ?? 'an unnamed client'}`
  try {
    const result = await next()
    write(`${what}: ${result['isError'] === true ? 'a result that is an error' : 'done'}`)
    return result
  } catch (error) {
    write(`${what}: ${String(error)}`)
    throw error
  }
}

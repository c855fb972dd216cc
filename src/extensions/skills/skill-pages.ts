import type { ExtensionConnection } from '../../client/extension.js'
import { withCode } from '../../jsonrpc/errors.js'
import type { Params } from '../../jsonrpc/message.js'

/** Maximum pages of a list, and characters of its items. */
const MAX_PAGES = 1000
const MAX_LENGTH = 64 * 1024 * 1024

/** The items of all pages of a list. */
export async function pagesOf(
  connection: ExtensionConnection,
  method: string,
  member: string,
  params: Params,
  signal: AbortSignal | undefined,
): Promise<unknown[]> {
  const options = signal === undefined ? {} : { signal }
  const all: unknown[] = []
  let length = 0
  let cursor: unknown
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const page = await connection.request(
      method,
      cursor === undefined ? params : { ...params, cursor },
      options,
    )
    const { [member]: items, nextCursor } = page
    if (!Array.isArray(items))
      throw withCode(
        'INVALID_RESPONSE',
        new TypeError(`The response to ${method} has no array "${member}"`),
      )
    length += JSON.stringify(items).length
    if (length > MAX_LENGTH) break
    for (const item of items) all.push(item)
    if (nextCursor === undefined || nextCursor === null) return all
    if (typeof nextCursor !== 'string' || nextCursor === cursor)
      throw withCode(
        'INVALID_RESPONSE',
        new TypeError(`The response to ${method} has an invalid "nextCursor"`),
      )
    cursor = nextCursor
  }
  throw withCode(
    'TOO_LARGE',
    new Error(`${method} returned more than ${MAX_PAGES} pages or ${MAX_LENGTH} characters`),
  )
}

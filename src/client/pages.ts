import { type Params, isObject } from '../jsonrpc/message.js'

/** Maximum pages of a list. */
const MAX_PAGES = 10_000

interface Requester<Options> {
  request(method: string, params: Params | undefined, options?: Options): Promise<Params>
}

/** Every item of a paginated list. */
export async function* listOf<Item, Options = unknown>(
  session: Requester<Options>,
  method: string,
  member: string,
  options: Options | undefined,
): AsyncIterableIterator<Item> {
  let cursor: string | undefined
  /** An earlier cursor, replaced at each power of two: a cycle of any length returns to it. */
  let earlier: string | undefined
  for (let number = 1; number <= MAX_PAGES; number++) {
    const page = await session.request(
      method,
      cursor === undefined ? undefined : { cursor },
      options,
    )
    const { [member]: items, nextCursor } = page
    if (!Array.isArray(items))
      throw new TypeError(`The response to ${method} has no array "${member}"`)
    for (const item of items as unknown[]) {
      if (!isObject(item) || typeof item['name'] !== 'string')
        throw new TypeError(`The response to ${method} has an item without a name`)
      yield item as Item // the other members are not checked
    }
    if (nextCursor === undefined || nextCursor === null) return
    if (typeof nextCursor !== 'string')
      throw new TypeError(`The response to ${method} has a "nextCursor" that is not a string`)
    // The same cursor again would repeat the pages for ever.
    if (nextCursor === earlier)
      throw new TypeError(
        `${method} does not end: the cursor ${JSON.stringify(nextCursor.slice(0, 200))} was returned twice`,
      )
    if ((number & (number - 1)) === 0) earlier = nextCursor
    cursor = nextCursor
  }
  throw new TypeError(`${method} does not end: the server returned more than ${MAX_PAGES} pages`)
}

import { type Params, isObject } from '../jsonrpc/message.js'

/** How many pages a list may have. */
const MAX_PAGES = 10_000

interface Requester<Options> {
  request(method: string, params: Params | undefined, options?: Options): Promise<Params>
}

/** Every item of a list of the server, page after page. */
export async function* listOf<Item, Options = unknown>(
  session: Requester<Options>,
  method: string,
  member: string,
  options: Options | undefined,
): AsyncIterableIterator<Item> {
  let cursor: string | undefined
  /** An earlier cursor, at ever greater distance: a circle of any size comes back to it. */
  let earlier: string | undefined
  for (let number = 1; number <= MAX_PAGES; number++) {
    const page = await session.request(
      method,
      cursor === undefined ? undefined : { cursor },
      options,
    )
    const { [member]: items, nextCursor } = page
    if (!Array.isArray(items))
      throw new TypeError(`The answer to ${method} has no list of ${member}`)
    for (const item of items as unknown[]) {
      if (!isObject(item) || typeof item['name'] !== 'string')
        throw new TypeError(`The answer to ${method} lists something without a name`)
      yield item as Item // the rest is the server's word
    }
    if (nextCursor === undefined || nextCursor === null) return
    if (typeof nextCursor !== 'string')
      throw new TypeError(`The answer to ${method} has a cursor that is no string`)
    // A server that hands out the same cursor again would never end.
    if (nextCursor === earlier)
      throw new TypeError(
        `${method} goes in circles: the cursor ${JSON.stringify(nextCursor.slice(0, 200))} came twice`,
      )
    if ((number & (number - 1)) === 0) earlier = nextCursor
    cursor = nextCursor
  }
  throw new TypeError(`${method} has no end: ${MAX_PAGES} pages came, and there are more`)
}

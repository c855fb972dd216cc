import { INVALID_PARAMS, RpcError } from '../../jsonrpc/errors.js'
import type { Params } from '../../jsonrpc/message.js'
import type { Context } from '../context.js'
import { maxEncryptedLength } from '../cipher.js'

/*
 * Lists are sent whole up to the server's page size, since many clients do not
 * follow cursors. A cursor is encrypted: only this server can make one.
 */

export function page(
  method: string,
  member: string,
  items: readonly { name: string; uri?: string; uriTemplate?: string }[],
  { server }: Context,
  { cursor }: Params,
): object | Promise<object> {
  if (cursor === undefined && items.length <= server.pageSize) return { [member]: items }
  return pageAfter(method, member, items, server, cursor)
}

async function pageAfter(
  method: string,
  member: string,
  items: readonly { name: string; uri?: string; uriTemplate?: string }[],
  { pageSize, cipher }: Context['server'],
  cursor: unknown,
): Promise<object> {
  let start = 0
  if (cursor !== undefined) {
    const longest = items.reduce((length, item) => Math.max(length, keyOf(item).length), 0)
    const after =
      typeof cursor === 'string'
        ? await cipher.decrypt(cursor, method, maxEncryptedLength(longest))
        : undefined
    // The list may have changed: the page begins after the last item of the one before.
    start = after === undefined ? 0 : items.findIndex((item) => keyOf(item) === after) + 1
    if (start === 0)
      throw new RpcError(
        INVALID_PARAMS,
        'Invalid params: unknown cursor, or the list has changed; list again without a cursor',
      )
  }
  const shown = items.slice(start, start + pageSize)
  const last = shown.at(-1)
  if (last === undefined || start + pageSize >= items.length) return { [member]: shown }
  return { [member]: shown, nextCursor: await cipher.encrypt(keyOf(last), method) }
}

function keyOf({
  name,
  uri,
  uriTemplate,
}: {
  name: string
  uri?: string
  uriTemplate?: string
}): string {
  return uri ?? uriTemplate ?? name
}

import { type CallOptions, RpcError } from '../client.js'
import { suggestion } from './options.js'

/** How long to look for what was meant. */
export const QUICK: CallOptions = { timeout: 5000 }
/** How many names are looked at. */
const MOST = 1000

/** For a `catch`: adds to an error of the server which of the names in its list was probably meant. */
export function didYouMean<Item>(
  typed: string,
  items: AsyncIterable<Item>,
  nameOf: (item: Item) => string,
) {
  return async (error: unknown): Promise<never> => {
    if (!(error instanceof RpcError)) throw error
    const names: string[] = []
    try {
      for await (const item of items) {
        names.push(String(nameOf(item)))
        if (names.length === MOST) break
      }
    } catch {
      // What came before may be enough.
    }
    throw names.includes(typed)
      ? error
      : new RpcError(error.code, error.message + suggestion(typed, names), error.data)
  }
}

import { type CallOptions, RpcError } from '../client.js'
import { suggestion } from './options.js'

/** Limits the time for finding a suggestion. */
export const SUGGESTION_OPTIONS: CallOptions = { timeout: 5000 }
/** Maximum number of names to compare. */
const MAX_NAMES = 1000

/** A `catch` handler that adds the most similar name of a list to an error from the server. */
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
        if (names.length === MAX_NAMES) break
      }
    } catch {
      // Use the names received so far.
    }
    throw names.includes(typed)
      ? error
      : new RpcError(error.code, error.message + suggestion(typed, names), error.data)
  }
}

import { vi } from 'vitest'

const INNERMOST = '"innermost"'

/** Arrays in arrays, such as `[["innermost"]]`. */
export function nestedBatch(depth: number): string {
  return '['.repeat(depth) + INNERMOST + ']'.repeat(depth)
}

/** How often a nested batch, or a part of it, is parsed in this process meanwhile. */
export async function parsesOf(run: () => Promise<void>): Promise<number> {
  const parse = vi.spyOn(JSON, 'parse')
  try {
    await run()
    return parse.mock.calls.filter(([text]) => String(text).includes(INNERMOST)).length
  } finally {
    parse.mockRestore()
  }
}

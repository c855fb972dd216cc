// A registered symbol: two copies of this package in one program understand each other.
const failed = Symbol.for('ccmcp.ToolError')

/** What went wrong, in words for the model: it becomes a result with `isError`. */
export class ToolError extends Error {
  override readonly name = 'ToolError'
  readonly [failed] = true
}

export function isToolError(error: unknown): error is ToolError {
  return error instanceof Error && failed in error
}

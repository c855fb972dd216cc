// A registered symbol, so that two copies of this package in one program work together.
const failed = Symbol.for('ccmcp.ToolError')

/** An error for the model: it becomes a result with `isError`. */
export class ToolError extends Error {
  override readonly name: string = 'ToolError'
  readonly [failed] = true
}

export function isToolError(error: unknown): error is ToolError {
  return error instanceof Error && failed in error
}

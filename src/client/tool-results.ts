import type { ErrorCode } from '../jsonrpc/errors.js'
import type { LogEntry } from '../jsonrpc/log-entry.js'
import { isObject } from '../jsonrpc/message.js'
import { truncate } from '../jsonrpc/truncate.js'
import type { CallToolResult, ToolListing } from '../protocol/model.js'
import type { Infer } from '../schema/infer.js'
import { type Issue, type Schema, describeIssues, validator } from '../schema/standard.js'

/** The result of a tool whose structured content fits a schema; unless it failed. */
export type TypedToolResult<Output> = Omit<CallToolResult, 'isError' | 'structuredContent'> &
  (
    | { isError: true; structuredContent?: unknown }
    | { isError?: false; structuredContent: Infer<Output> }
  )

/** Rejects a call whose result does not fit the output schema. The tool has been executed. */
export class InvalidResultError extends Error {
  override readonly name = 'InvalidResultError'
  readonly code: ErrorCode = 'INVALID_RESULT'
  /** The result as received. */
  readonly result: CallToolResult
  /** What is wrong with its structured content. */
  readonly issues: readonly Issue[]

  constructor(message: string, result: CallToolResult, issues: readonly Issue[] = []) {
    super(message)
    this.result = result
    this.issues = issues
  }
}

type Check = ReturnType<typeof validator>

/** Compiled schemas of callers. */
const compiled = new WeakMap<Schema, Check>()

/** The check by a caller's schema; throws a TypeError if it is not valid. */
export function checkBy(schema: Schema): Check {
  const known = compiled.get(schema)
  if (known !== undefined) return known
  try {
    const check = validator(schema)
    compiled.set(schema, check)
    return check
  } catch (error) {
    if (error instanceof Error) error.message = `callTool: "output" ${error.message}`
    throw error
  }
}

/** The result with the value that the caller's schema makes of its structured content. */
export async function typedResult<Output extends Schema>(
  name: string,
  result: CallToolResult,
  check: Check,
): Promise<TypedToolResult<Output>> {
  if (result.isError === true) return { ...result, isError: true }
  const value = await validated(name, result, contentOf(result), check)
  return { ...result, structuredContent: value } as TypedToolResult<Output> // as the schema says
}

/** Structured content; for revisions and servers without it, the JSON of a single text. */
function contentOf({ structuredContent, content }: CallToolResult): unknown {
  if (structuredContent !== undefined) return structuredContent
  const [block, ...others] = content
  if (others.length > 0 || !isObject(block) || typeof block['text'] !== 'string') return undefined
  try {
    return JSON.parse(block['text'])
  } catch {
    return undefined
  }
}

async function validated(
  name: string,
  result: CallToolResult,
  value: unknown,
  check: Check,
): Promise<unknown> {
  const tool = truncate(name)
  if (value === undefined)
    throw new InvalidResultError(
      `The result of the tool ${tool} has no structured content, but the output schema requires it`,
      result,
    )
  const outcome = await check(value)
  if (outcome.issues === undefined) return outcome.value
  throw new InvalidResultError(
    `The result of the tool ${tool} does not fit the output schema: ${describeIssues(outcome.issues)}`,
    result,
    outcome.issues,
  )
}

/** Maximum characters of names and schemas that are stored. */
const MAX_STORED = 4 * 1024 * 1024

/** The output schemas of a server's tools. */
export class OutputSchemas {
  /** Undefined until the tools were listed. A tool without an output schema is not in it. */
  #schemas: Map<string, unknown> | undefined
  /** How often the tools have changed: a list that was requested before is not used. */
  #changes = 0

  /** The tools have changed. */
  clear(): void {
    this.#schemas = undefined
    this.#changes++
  }

  /** The output schema of a tool; lists the tools if they are not known. */
  async of(name: string, list: () => AsyncIterable<ToolListing>): Promise<unknown> {
    if (this.#schemas !== undefined) return this.#schemas.get(name)
    const before = this.#changes
    const schemas = new Map<string, unknown>()
    let found: unknown
    let stored = 0
    for await (const tool of list()) {
      const { outputSchema } = tool
      if (outputSchema === undefined) continue
      if (tool.name === name) found = outputSchema
      stored += tool.name.length + (JSON.stringify(outputSchema) ?? '').length
      if (stored <= MAX_STORED) schemas.set(tool.name, outputSchema)
    }
    // Without all schemas, the tools are listed again for the next call.
    if (before === this.#changes && stored <= MAX_STORED) this.#schemas = schemas
    return found
  }
}

/**
 * Throws if the result does not fit the output schema that the server has listed for the tool. A schema that cannot be
 * used is reported, and the result is not validated: the call has already run.
 */
export async function checkResult(
  name: string,
  result: CallToolResult,
  schema: unknown,
  report: (entry: LogEntry) => void,
): Promise<void> {
  if (schema === undefined || result.isError === true) return
  const check = listedCheck(name, schema, report)
  if (check !== undefined) await validated(name, result, result.structuredContent, check)
}

/** The checks by listed schemas; undefined for those that cannot be used, which are reported once. */
const listed = new WeakMap<object, Check | undefined>()

function listedCheck(
  name: string,
  schema: unknown,
  report: (entry: LogEntry) => void,
): Check | undefined {
  if (isObject(schema) && listed.has(schema)) return listed.get(schema)
  let check: Check | undefined
  try {
    if (!isObject(schema)) throw new TypeError('is not an object')
    // A JSON Schema, whatever a server gives it as a member.
    const { '~standard': _, ...json } = schema
    check = validator(json)
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error)
    report({
      level: 'warning',
      message: `The results of the tool ${truncate(name)} are not validated: its output schema ${truncate(problem)}`,
      error,
    })
  }
  if (isObject(schema)) listed.set(schema, check)
  return check
}

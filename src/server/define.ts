import type { ContentBlock, Icon, Meta, ToolAnnotations } from '../protocol/model.js'
import type { Infer, InferInput } from '../schema/infer.js'
import type { JsonSchema, StandardSchema } from '../schema/standard.js'
import type { Call, Caller } from './call.js'

/** A schema of zod, valibot, arktype or any other Standard Schema library, or a plain JSON Schema. */
export type Schema = StandardSchema | JsonSchema

// Registered symbols: two copies of this package in one program understand each other.
const failed = Symbol.for('ccmcp.ToolError')
const branded = Symbol.for('ccmcp.result')

/** What went wrong, in words for the model: it becomes a result with `isError`. */
export class ToolError extends Error {
  override readonly name = 'ToolError'
  readonly [failed] = true
}

export function isToolError(error: unknown): error is ToolError {
  return error instanceof Error && failed in error
}

/** A tool's result in full: a value for `output`, content beside it, `_meta`. */
export interface ToolResult<Value = unknown> {
  value?: Value
  content?: string | ContentBlock | readonly (string | ContentBlock)[]
  meta?: Meta
  isError?: boolean
}

/** Says more than a plain return value can. */
export function result<const Value>(parts: ToolResult<Value>): Branded<Value> {
  return { ...parts, [branded]: true }
}
export type Branded<Value = unknown> = ToolResult<Value> & { readonly [branded]: true }

export function isBranded(value: unknown): value is Branded {
  return typeof value === 'object' && value !== null && branded in value
}

interface ToolFacts {
  name: string
  title?: string
  description?: string
  annotations?: ToolAnnotations
  icons?: Icon[]
  meta?: Meta
  /** Who sees it. Those who do not cannot call it either. */
  visible?: (caller: Caller) => boolean
  /** Milliseconds after which a call is given up. */
  timeout?: number
  /** How many calls may run at once; others wait their turn. */
  concurrency?: number
}

export interface ToolDefinition<Input, Output, Result = Returned<Output> | Promise<Returned<Output>>> extends ToolFacts {
  input?: Input
  output?: Output
  run: (input: Infer<Input>, call: Call) => Result
}

type Returned<Output> = undefined extends Output ? unknown : Frozen<InferInput<Output>> | Branded<Frozen<InferInput<Output>>>

/** A handler may return literals and constant arrays as they are. */
type Frozen<Type> = Type extends (infer Item)[]
  ? readonly Frozen<Item>[]
  : Type extends object
    ? { readonly [Key in keyof Type]: Frozen<Type[Key]> }
    : Type

/** A definition without its types: what a server holds. */
export interface Tool extends ToolFacts {
  readonly input: Schema
  readonly output?: Schema
  readonly run?: (input: unknown, call: Call) => unknown
}

const NO_INPUT = { type: 'object', additionalProperties: false } as const satisfies JsonSchema

/** Defines a tool. Its handler's types come from its schemas. */
export function tool<
  const Input extends Schema = typeof NO_INPUT,
  const Output extends Schema | undefined = undefined,
  const Result extends Returned<Output> | Promise<Returned<Output>> = Returned<Output> | Promise<Returned<Output>>,
>(definition: ToolDefinition<Input, Output, Result>): Tool {
  const { input = NO_INPUT, output, run, ...facts } = definition
  const untyped = run as (input: unknown, call: Call) => unknown // `input` has been checked against the schema it was typed by
  return output === undefined ? { ...facts, input, run: untyped } : { ...facts, input, output, run: untyped }
}

import type {
  CacheHint,
  ContentBlock,
  Icon,
  Meta,
  ResourceContents,
  ResourceListing,
  Role,
  ToolAnnotations,
} from '../protocol/model.js'
import type { Infer, InferInput, NoRawShape } from '../schema/infer.js'
import type { JsonSchema, Schema } from '../schema/standard.js'
import type { Call, Caller } from './call.js'

// A registered symbol, so that two copies of this package in one program work together.
const branded = Symbol.for('ccmcp.result')

/** A tool's result in full: a value for `output`, content beside it, `_meta`. */
export interface ToolResult<Value = unknown> {
  value?: Value
  content?: string | ContentBlock | readonly (string | ContentBlock)[]
  meta?: Meta
  isError?: boolean
}

/** A result with more than a return value: content, `_meta`, a failure. With `isError: true` the value is optional. */
export function result(parts: ToolResult & { isError: true }): Branded<never>
export function result<const Value>(parts: ToolResult<Value>): Branded<Value>
export function result<const Value>(parts: ToolResult<Value>): Branded<Value> {
  return { ...parts, [branded]: true }
}
export type Branded<Value = unknown> = ToolResult<Value> & { readonly [branded]: true }

export function isBranded(value: unknown): value is Branded {
  return typeof value === 'object' && value !== null && branded in value
}

/** Members that extensions add to tools. An extension declares its own: `declare module 'ccmcp' { interface ToolFields { … } }`. */
// oxlint-disable-next-line typescript/no-empty-object-type -- filled by declaration merging
export interface ToolFields {}

interface ToolProperties extends ToolFields {
  /** 1 to 128 letters, digits, `_`, `-` and `.`; unique among the tools of a server. */
  name: string
  /** The display name; default is the name. */
  title?: string
  /** What it does and when to use it, for the model. */
  description?: string
  /** Hints: `readOnlyHint`, `destructiveHint`, `idempotentHint`, `openWorldHint`. */
  annotations?: ToolAnnotations
  /** Icons, each with a `src`. */
  icons?: Icon[]
  /** Sent as `_meta` with its listing. */
  meta?: Meta
  /** Whether a caller sees it, or a promise of that. Others cannot call it either. */
  visible?: (caller: Caller) => boolean | Promise<boolean>
  /** The OAuth scopes that a remote caller's token must grant. */
  scopes?: readonly string[]
  /** Milliseconds after which a call is aborted. */
  timeout?: number
  /** Maximum calls that run at the same time; others are queued. */
  concurrency?: number
  /** Maximum size of a result in bytes; of a larger one the beginning is sent, with a link to the whole. */
  maxResult?: number
  /** Maximum calls in the queue (default 1000 for clients over HTTP, no limit for others); further calls fail with a request to try again later. */
  queue?: number
}

export interface ToolDefinition<
  Input,
  Output,
  Result = Returned<Output> | Promise<Returned<Output>>,
> extends ToolProperties {
  /** The schema of its arguments: JSON Schema or Standard Schema, an object at the top. Default: no arguments. */
  input?: Input & NoRawShape<Input>
  /** The schema of its result, which is validated and sent as structured content. */
  output?: Output & NoRawShape<Output>
  /** The handler. Its return value is the result; an error that it throws is shown to the model. */
  run: (input: Infer<Input>, call: Call) => Result
}

type Returned<Output> = undefined extends Output
  ? unknown
  : DeepReadonly<InferInput<Output>> | Branded<DeepReadonly<InferInput<Output>>>

/** A handler may return literals and constant arrays as they are. */
type DeepReadonly<Type> = Type extends (infer Item)[]
  ? readonly DeepReadonly<Item>[]
  : Type extends object
    ? { readonly [Key in keyof Type]: DeepReadonly<Type[Key]> }
    : Type

/** A definition without its types: what a server holds. */
export interface Tool extends ToolProperties {
  readonly input?: Schema
  readonly output?: Schema
  readonly run?: (input: unknown, call: Call) => unknown
}

export const NO_INPUT = {
  type: 'object',
  additionalProperties: false,
} as const satisfies JsonSchema

/** Defines a tool. Its handler's types come from its schemas. */
export function tool<
  const Input extends Schema = typeof NO_INPUT,
  const Output extends Schema | undefined = undefined,
  const Result extends Returned<Output> | Promise<Returned<Output>> =
    | Returned<Output>
    | Promise<Returned<Output>>,
>(definition: ToolDefinition<Input, Output, Result>): Tool {
  const { input = NO_INPUT, output, run, ...facts } = definition
  const untyped = run as (input: unknown, call: Call) => unknown // `input` has been checked against the schema it was typed by
  return output === undefined
    ? { ...facts, input, run: untyped }
    : { ...facts, input, output, run: untyped }
}

/** Completions of what has been typed so far; `others` are the arguments that are known already. */
export type Complete = (
  typed: string,
  others: Readonly<Record<string, string>>,
) => readonly string[] | Promise<readonly string[]>

/** The variables of a URI template: `{name}` is a text, `{name*}` a list of them. */
type Variables<Uri extends string> = string extends Uri
  ? Record<string, string | string[]>
  : Uri extends `${string}{${infer Expression}}${infer Rest}`
    ? Named<Expression> & Variables<Rest>
    : unknown
type Named<Expression extends string> =
  Expression extends `${'+' | '#' | '.' | '/' | ';' | '?' | '&'}${infer List}`
    ? Each<List>
    : Each<Expression>
type Each<List extends string> = List extends `${infer First},${infer Rest}`
  ? One<First> & Each<Rest>
  : One<List>
type One<Name extends string> = Name extends `${infer Bare}*`
  ? { [Key in Bare]?: string[] }
  : Name extends `${infer Bare}:${string}`
    ? { [Key in Bare]: string }
    : { [Key in Name]: string }

interface ResourceProperties extends Omit<ResourceListing, 'uri' | 'name' | '_meta'> {
  /** The programmatic name; default is the URI. */
  name?: string
  /** Sent as `_meta` with its listing. */
  meta?: Meta
  /** Whether a caller sees it, or a promise of that. Others cannot read it either. */
  visible?: (caller: Caller) => boolean | Promise<boolean>
  /** The OAuth scopes that a remote caller's token must grant. */
  scopes?: readonly string[]
  /** Caching hints of its contents (default: not cacheable). */
  cache?: Partial<CacheHint>
  /** Accepts values that could escape from a path (`a%2F..%2Fb`, a leading slash): `read` must check them. */
  anyPath?: boolean
}

/** Text, bytes, or contents in full. */
type ReadItem =
  | string
  | Uint8Array
  | (Partial<Omit<ResourceContents, 'uri' | 'blob'>> & {
      uri?: string | undefined
      blob?: string | Uint8Array | undefined
    })
/** One or several of them, also as a `ReadResourceResult`; undefined if there is no such resource. */
type ReadValue =
  | ReadItem
  | readonly ReadItem[]
  | ({
      contents: readonly ReadItem[]
      _meta?: Meta | undefined
      resultType?: 'complete' | undefined
    } & Partial<CacheHint>)
  | undefined

type ListValue = ResourceListing[] | { resources: ResourceListing[] }

export interface ResourceDefinition<Uri extends string> extends ResourceProperties {
  /** A fixed URI, or a template (RFC 6570) such as `file:///{+path}`. */
  uri: Uri
  /** Returns its contents: a string, bytes, contents in full, several, or `{ contents }`; undefined if there is no such resource. */
  read: (variables: Variables<Uri>, call: Call) => ReadValue | Promise<ReadValue>
  /** Lists resources of a template: an array, or `{ resources }`. */
  list?: (call: Call) => ListValue | Promise<ListValue>
  /** By variable of the template: completions of what has been typed so far. */
  complete?: { readonly [Key in keyof Variables<Uri>]?: Complete }
}

export interface Resource extends ResourceProperties {
  readonly uri: string
  readonly read: (
    variables: Record<string, string | string[]>,
    call: Call,
  ) => ReadValue | Promise<ReadValue>
  readonly list?: (call: Call) => ListValue | Promise<ListValue>
  readonly complete?: Readonly<Record<string, Complete | undefined>>
}

/** Defines a resource, or a template of resources. */
export function resource<const Uri extends string>(definition: ResourceDefinition<Uri>): Resource {
  return definition as unknown as Resource // the variables come out of the URI that they were typed by
}

export interface PromptArgument {
  /** The display name; default is the name. */
  title?: string
  /** What it is for. */
  description?: string
  /** Default true. */
  required?: boolean
  /** The allowed values; they are also the completions. */
  values?: readonly string[]
  /** Completions of what has been typed so far. */
  complete?: Complete
}

interface PromptProperties {
  /** Unique among the prompts of a server. */
  name: string
  /** The display name; default is the name. */
  title?: string
  /** What it is for. */
  description?: string
  /** Icons, each with a `src`. */
  icons?: Icon[]
  /** Sent as `_meta` with its listing. */
  meta?: Meta
  /** Whether a caller sees it, or a promise of that. Others cannot get it either. */
  visible?: (caller: Caller) => boolean | Promise<boolean>
  /** The OAuth scopes that a remote caller's token must grant. */
  scopes?: readonly string[]
}

/** A string (a user message), a content block, messages, or a `GetPromptResult`. */
type PromptValue =
  | string
  | ContentBlock
  | PromptMessageInput
  | readonly (string | ContentBlock | PromptMessageInput)[]
  | {
      messages: readonly PromptMessageInput[]
      description?: string | undefined
      _meta?: Meta | undefined
      resultType?: 'complete' | undefined
    }
interface PromptMessageInput {
  role: Role
  content: string | ContentBlock
}

/** A text for each argument, also those of which only the name is known; `required: false` may be missing. */
type PromptArguments<Name extends string, Needs> = {
  [Key in Name as IsOptional<Key, Needs> extends true ? never : Key]: string
} & {
  [Key in Name as IsOptional<Key, Needs> extends true ? Key : never]?: string
}
type IsOptional<Name, Needs> = Name extends keyof Needs
  ? Needs[Name] extends false
    ? true
    : false
  : false

/** Prompt arguments are strings, so schemas are not allowed. */
interface NoSchema {
  readonly '~standard'?: never
}

// Names and needs are inferred apart: with one parameter for both, a `complete` whose parameters have no types would keep it from being inferred.
export interface PromptDefinition<Name extends string, Needs> extends PromptProperties {
  /** Arguments by name. */
  arguments?: { readonly [Key in Name]: PromptArgument & NoSchema } & {
    readonly [Key in keyof Needs]: { readonly required?: Needs[Key] }
  }
  /** Returns its messages: a string or a content block (of the user), a message with a `role`, an array of these, or `{ messages }`. */
  build: (given: PromptArguments<Name, Needs>, call: Call) => PromptValue | Promise<PromptValue>
}

export interface Prompt extends PromptProperties {
  readonly arguments?: Readonly<Record<string, PromptArgument>>
  readonly build: (given: Record<string, string>, call: Call) => PromptValue | Promise<PromptValue>
}

/** Defines a prompt. */
export function prompt<const Name extends string = never, const Needs = unknown>(
  definition: PromptDefinition<Name, Needs>,
): Prompt {
  return definition as unknown as Prompt // its arguments have been checked by their names
}

import type { IncomingRequest } from '../jsonrpc/incoming.js'
import type {
  CreateMessageParams,
  CreateMessageResult,
  Implementation,
  Root,
  SamplingContent,
  SamplingMessage,
} from '../protocol/model.js'
import type { Revision } from '../protocol/revisions/index.js'
import type { Infer, NoRawShape } from '../schema/infer.js'
import type { Schema } from '../schema/standard.js'
import { ToolError } from './tool-error.js'
import type { Cipher } from './cipher.js'

/*
 * What a handler can ask the client for. Questions are plain data; how they
 * are sent, and whether the call waits or is run again, depends on the revision.
 */

/** Carries the type of the answer; it has no value at run time. */
declare const answered: unique symbol
interface Asked<Answer> {
  readonly [answered]?: Answer
}

interface FormQuestion {
  readonly kind: 'form'
  readonly message: string
  readonly schema: Schema
  readonly optional?: boolean | undefined
}
interface UrlQuestion {
  readonly kind: 'url'
  readonly message: string
  readonly url: string
  readonly optional?: boolean | undefined
}
interface SampleQuestion {
  readonly kind: 'sample'
  readonly params: SampleParams
  readonly optional?: boolean | undefined
}
interface RootsQuestion {
  readonly kind: 'roots'
  readonly optional?: boolean | undefined
}

export type Question<Answer = unknown> = (
  | FormQuestion
  | UrlQuestion
  | SampleQuestion
  | RootsQuestion
) &
  Asked<Answer>

/** The answers to questions, each under the key of its question. */
export type Answers<Questions> = {
  -readonly [Key in keyof Questions]: Questions[Key] extends Question<infer Answer> ? Answer : never
}

/** With `optional`, the answer is undefined if the user declines; otherwise `DeclinedError` is thrown. */
interface Optional<Is extends boolean> {
  optional?: Is
}
type Maybe<Answer, Is extends boolean> = Is extends true ? Answer | undefined : Answer

/** A form for the user: an object of strings, numbers, booleans and enums. Never ask for secrets this way. */
export function form<const Fields extends Schema, const Is extends boolean = false>(
  question: { message: string; schema: Fields & NoRawShape<Fields> } & Optional<Is>,
): Question<Maybe<Infer<Fields>, Is>> {
  return { kind: 'form', ...question }
}

/** A URL for the user to open, for data that must not pass through the client. The answer means that the user agreed to open it, not that the interaction is complete. */
export function url<const Is extends boolean = false>(
  question: { message: string; url: string } & Optional<Is>,
): Question<Maybe<true, Is>> {
  return { kind: 'url', ...question }
}

/** The parameters of sampling; in the content of a message, a string is a text block. */
export interface SampleParams extends Omit<CreateMessageParams, 'messages'> {
  messages: readonly SampleMessage[]
}
interface SampleMessage extends Omit<SamplingMessage, 'content'> {
  content: string | SamplingContent | readonly (string | SamplingContent)[]
}

/** Sampling: a message from the client's model. */
export function sample<const Is extends boolean = false>(
  params: SampleParams,
  options: Optional<Is> = {},
): Question<Maybe<CreateMessageResult, Is>> {
  // JavaScript code may pass anything.
  if (!Array.isArray(params?.messages) || !Number.isInteger(params.maxTokens))
    throw new TypeError(
      'sample: "messages" must be an array of { role, content }, and "maxTokens" an integer',
    )
  return { kind: 'sample', params, ...options }
}

/** The roots of the client: the directories that the user works in. */
export function roots(): Question<Root[]> {
  return { kind: 'roots' }
}

/** The user declined or cancelled the question. */
export class DeclinedError extends ToolError {
  override readonly name = 'DeclinedError'
  readonly key: string
  /** `decline`: the user said no; `cancel`: the user closed the question without an answer. */
  readonly action: 'decline' | 'cancel'

  constructor(key: string, action: 'decline' | 'cancel', message: string) {
    super(message)
    this.key = key
    this.action = action
  }
}

/**
 * The call was answered with `input_required`; a later request runs it again,
 * with the answers. Do not catch it, except to clean up.
 */
export class Suspended extends Error {
  override readonly name = 'Suspended'

  constructor() {
    super('This call is suspended and will be run again with the answers')
  }
}

/** A JSON value. */
export type Json =
  | string
  | number
  | boolean
  | null
  | undefined
  | readonly Json[]
  | { readonly [key: string]: Json }

/**
 * What a step may return. Unlike `Json` it accepts objects of an interface, and undefined; it refuses dates, maps,
 * functions and promises by their members. The members of an object are checked when the step has run.
 */
export type StepValue =
  | string
  | number
  | boolean
  | null
  | undefined
  | void
  | readonly StepValue[]
  | PlainObject
type PlainObject = object & {
  readonly toJSON?: never
  readonly then?: never
  readonly [Symbol.iterator]?: never
  readonly [Symbol.hasInstance]?: never
}

/** How a call asks its client, and records its steps. */
export interface Asking {
  readonly key: string
  readonly attempt: number
  /** Whether the call was answered with `input_required`. */
  readonly suspended: boolean
  ask(questions: Readonly<Record<string, Question>>): Promise<Record<string, unknown>>
  step<Value extends StepValue>(
    key: string,
    run: (signal: AbortSignal) => Value | Promise<Value>,
  ): Promise<Value>
}

export interface StateOptions {
  /** Secrets that encrypt `requestState`, 32 characters or more each. The first one encrypts, all of them decrypt. */
  keys?: readonly string[]
  /** Milliseconds in which a question can be answered (default 10 minutes). */
  ttl?: number
  /** Maximum size of `requestState` in bytes (default 65536). */
  maxBytes?: number
  /** Accepts each state once: returns false if the id was consumed before. */
  once?: { consume(id: string, expires: number): boolean | Promise<boolean> }
}

/** What asking needs of its call and its server. */
export interface AskContext {
  /** The key of the call, unless a state has one. */
  readonly key: string
  readonly incoming: IncomingRequest
  /** Fires when the call is cancelled or timed out. */
  readonly signal: AbortSignal
  readonly revision: Revision
  /** Whether the response may be `input_required`. */
  readonly mayAsk: boolean
  readonly capabilities: Readonly<Record<string, unknown>>
  /** What a state is bound to: it is refused for anything else. */
  readonly binding: Binding
  readonly state: Required<Omit<StateOptions, 'keys' | 'once'>> &
    Pick<StateOptions, 'once'> & { readonly cipher: Cipher }
  readonly server: Implementation
  /** Waits for a promise; meanwhile the tool's timeout is paused and its slot is free. */
  waiting<Value>(promise: Promise<Value>): Promise<Value>
}

export interface Binding {
  readonly principal: string
  readonly method: string
  /** The tool, prompt or resource. */
  readonly name: string
  readonly arguments: unknown
  /** Distinguishes versions of the definition. */
  readonly definition: string
}

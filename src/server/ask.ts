import type { Incoming } from '../jsonrpc/incoming.js'
import type {
  CreateMessageParams,
  CreateMessageResult,
  Implementation,
  Root,
} from '../protocol/model.js'
import type { Revision } from '../protocol/revisions/index.js'
import type { Infer } from '../schema/infer.js'
import type { Schema } from '../schema/standard.js'
import { ToolError } from './failure.js'
import type { Seal } from './seal.js'

/*
 * What a handler can ask the client for. Questions are plain data; how they
 * are put, and what becomes of the call meanwhile, depends on the revision.
 */

/** Carries the type of its answer; there is no value behind it. */
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
  readonly params: CreateMessageParams
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

/** With `optional`, a user who declines is answered with undefined; without, the handler ends with `Declined`. */
interface Optional<Is extends boolean> {
  optional?: Is
}
type Maybe<Answer, Is extends boolean> = Is extends true ? Answer | undefined : Answer

/** Has the user fill in a form: an object of texts, numbers, yes or no, and choices. Never ask for secrets this way. */
export function form<const Fields extends Schema, const Is extends boolean = false>(
  question: { message: string; schema: Fields } & Optional<Is>,
): Question<Maybe<Infer<Fields>, Is>> {
  return { kind: 'form', ...question }
}

/** Has the user open a URL, for what must not pass through the client. The answer says that the user agreed, not that it is done. */
export function url<const Is extends boolean = false>(
  question: { message: string; url: string } & Optional<Is>,
): Question<Maybe<true, Is>> {
  return { kind: 'url', ...question }
}

/** Has the client's model complete a conversation. */
export function sample<const Is extends boolean = false>(
  params: CreateMessageParams,
  options: Optional<Is> = {},
): Question<Maybe<CreateMessageResult, Is>> {
  return { kind: 'sample', params, ...options }
}

/** Asks for the folders that the user works in. */
export function roots(): Question<Root[]> {
  return { kind: 'roots' }
}

/** The user has said no, or has closed the question. */
export class Declined extends ToolError {
  readonly key: string

  constructor(key: string, message: string) {
    super(message)
    this.key = key
  }
}

/**
 * The call has been answered with questions; a later request begins anew, with
 * their answers. Let it pass: only what must be cleaned up should see it.
 */
export class Suspended extends Error {
  override readonly name = 'Suspended'

  constructor() {
    super('This call waits for answers and will be run again with them')
  }
}

/** What JSON can carry. */
export type Json =
  | string
  | number
  | boolean
  | null
  | undefined
  | readonly Json[]
  | { readonly [key: string]: Json }

/**
 * What a step may return. Unlike `Json` it takes objects of an interface, and nothing at all; it refuses dates, maps,
 * functions and promises by what they have. What is within an object is looked at when the step has run.
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

/** How a call asks, and remembers what it has done. */
export interface Asking {
  readonly key: string
  readonly attempt: number
  /** Whether the call has been answered with questions. */
  readonly suspended: boolean
  ask(questions: Readonly<Record<string, Question>>): Promise<Record<string, unknown>>
  step<Value extends StepValue>(
    key: string,
    run: (signal: AbortSignal) => Value | Promise<Value>,
  ): Promise<Value>
}

export interface StateOptions {
  /** Secrets that seal what clients hold for us: 32 characters or more each. The first one seals, all of them open. */
  keys?: readonly string[]
  /** Milliseconds for which a question is good (default 10 minutes). */
  ttl?: number
  /** The most that a client is given to hold, in bytes (default 65536). */
  maxBytes?: number
  /** Remembers states that have been used: false where that id was consumed before. */
  once?: { consume(id: string, expires: number): boolean | Promise<boolean> }
}

/** What asking needs to know of its call. */
export interface AskContext {
  /** The call's own, if no state brings one. */
  readonly key: string
  readonly incoming: Incoming
  /** Fires when the call is cancelled, or its time is over. */
  readonly signal: AbortSignal
  readonly revision: Revision
  /** Whether the response may be `input_required`. */
  readonly mayAsk: boolean
  readonly capabilities: Readonly<Record<string, unknown>>
  /** What a state belongs to: it is of no use to anybody or anything else. */
  readonly binding: Binding
  readonly state: Required<Omit<StateOptions, 'keys' | 'once'>> &
    Pick<StateOptions, 'once'> & { readonly seal: Seal }
  readonly server: Implementation
  /** Waits for somebody else: meanwhile the call takes neither time nor a place. */
  waiting<Value>(promise: Promise<Value>): Promise<Value>
}

export interface Binding {
  readonly principal: string
  readonly method: string
  /** The tool, prompt or resource. */
  readonly name: string
  readonly arguments: unknown
  /** The text that tells one version of the definition from another. */
  readonly definition: string
}

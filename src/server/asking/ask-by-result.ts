import { INVALID_PARAMS, RpcError, abortError } from '../../jsonrpc/errors.js'
import { ignore } from '../../jsonrpc/hook.js'
import { type Params, isObject } from '../../jsonrpc/message.js'
import { MISSING_CLIENT_CAPABILITY } from '../../protocol/errors.js'
import { type Asking, type Question, type AskContext, type StepValue, Suspended } from '../ask.js'
import { ToolError } from '../tool-error.js'
import {
  type QuestionRequest,
  declinedError,
  missingCapabilities,
  parseAnswer,
  toRequest,
  type ValidAnswer,
} from './questions.js'
import { type State, digest, decryptState } from './state.js'
import { type Recorded, Steps } from './steps.js'

/** What a suspended call needs to be run again. */
export interface Suspension {
  readonly key: string
  readonly attempt: number
  /** The questions to ask, with their digests. */
  readonly questions: ReadonlyMap<string, { request: QuestionRequest; digest: string }>
  /** The answers so far: by key, then by the digest of the question. */
  readonly answers: State['answers']
  readonly steps: Readonly<Record<string, Recorded>>
}

/** Ends a call that has to wait for answers, or that cannot ask its client. */
export type Suspend = (suspension: Suspension | RpcError) => void | Promise<void>

/** What a call that is suspended needs of its surroundings. */
export type SuspendingContext = Pick<
  AskContext,
  'key' | 'signal' | 'revision' | 'mayAsk' | 'capabilities'
> & {
  readonly state: { readonly maxBytes: number }
  readonly binding: { readonly method: string }
}

/**
 * Asks by an `input_required` result: the call ends, and a later request runs
 * it again from the top, with the answers and the finished steps.
 */
export class AskByResult implements Asking {
  readonly key: string
  readonly attempt: number
  readonly #context: SuspendingContext
  readonly #suspend: Suspend
  #redirected: ((suspension: Suspension | RpcError) => Promise<boolean>) | undefined
  readonly #previousState: Pick<State, 'asked'> | undefined
  readonly #responses: Params
  readonly #steps: Steps
  readonly #stopped = new AbortController()
  /** The answers so far: by key, then by the digest of the question. */
  readonly #answers = new Map<string, Readonly<Record<string, unknown>>>()
  /** The questions to ask, with their digests. */
  readonly #missing = new Map<string, { request: QuestionRequest; digest: string }>()
  /** Pending look-ups of answers. */
  readonly #pendingLookups = new Set<Promise<unknown>>()
  #suspending: Promise<void> | undefined
  /** The result is being made: later questions and steps are not part of it. */
  #ending = false
  #suspended = false

  constructor(
    context: SuspendingContext,
    suspend: Suspend,
    before?: Omit<State, 'id' | 'expires' | 'binding'>,
    responses: Params = {},
  ) {
    this.#context = context
    this.#suspend = suspend
    this.#previousState = before
    this.#responses = responses
    this.key = before?.key ?? context.key
    this.attempt = (before?.attempt ?? 0) + 1
    const signal = () => AbortSignal.any([context.signal, this.#stopped.signal])
    this.#steps = new Steps(context.state.maxBytes, signal, before?.steps)
    for (const [key, answers] of Object.entries(before?.answers ?? {}))
      this.#answers.set(key, answers)
  }

  /** Resumes a call from its state; throws if the state is invalid. */
  static async resume(
    context: AskContext,
    suspend: Suspend,
    { requestState, inputResponses = {} }: Params,
  ): Promise<AskByResult> {
    if (!isObject(inputResponses))
      throw new RpcError(INVALID_PARAMS, 'Invalid params: "inputResponses" must be an object')
    const before =
      requestState === undefined ? undefined : await decryptState(context, requestState)
    return new AskByResult(context, suspend, before, inputResponses)
  }

  get suspended(): boolean {
    return this.#suspended
  }

  /** What has been recorded so far, with the answers of this request that were not looked up yet. */
  get recorded(): Pick<Suspension, 'answers' | 'steps'> {
    const answers = new Map(this.#answers)
    for (const [key, mark] of Object.entries(this.#previousState?.asked ?? {})) {
      const response = Object.hasOwn(this.#responses, key) ? this.#responses[key] : undefined
      if (response !== undefined) answers.set(key, { [mark]: response, ...answers.get(key) })
    }
    return { answers: Object.fromEntries(answers), steps: this.#steps.recorded }
  }

  /** The outcome of one finished step. */
  outcomeOf(step: string): Recorded | undefined {
    return this.#steps.outcomeOf(step)
  }

  /**
   * From now on, the call is suspended by `suspend`; if that returns false, as before. Returns false if the call is
   * being suspended already.
   */
  redirect(suspend: (suspension: Suspension | RpcError) => Promise<boolean>): boolean {
    if (this.#suspending !== undefined) return false
    this.#redirected = suspend
    return true
  }

  async step<Value extends StepValue>(
    key: string,
    run: (signal: AbortSignal) => Value | Promise<Value>,
  ): Promise<Value> {
    if (this.#ending) return await this.#throwSuspended()
    return await this.#steps.step(key, run)
  }

  async ask(questions: Readonly<Record<string, Question>>): Promise<Record<string, unknown>> {
    this.#steps.assertNotInStep('call.ask()')
    if (this.#ending) return await this.#throwSuspended()
    const deciding = this.#lookUpAnswers(questions)
    const decided: Promise<unknown> = deciding
      .then(ignore, ignore)
      .then(() => this.#pendingLookups.delete(decided))
    this.#pendingLookups.add(decided)
    const answers = await deciding
    if (answers !== undefined) return answers
    if (!this.#ending) this.#suspending ??= this.#end()
    return await this.#throwSuspended()
  }

  /** The answers, if all of them are known; otherwise the missing ones are asked for. */
  async #lookUpAnswers(
    questions: Readonly<Record<string, Question>>,
  ): Promise<Record<string, unknown> | undefined> {
    const answers = new Map<string, unknown>()
    const missing = new Map<string, { request: QuestionRequest; digest: string }>()
    for (const [key, question] of Object.entries(questions)) {
      const request = this.#toRequest(key, question)
      const mark = await digest([request.method, request.params])
      const reading = await this.#findAnswer(key, mark, question)
      if (reading !== undefined) answers.set(key, answerValue(key, question, reading))
      else missing.set(key, { request, digest: mark })
    }
    if (missing.size === 0) return Object.fromEntries(answers)
    // Only when all are valid: a handler may ask something else instead.
    if (!this.#ending) for (const [key, each] of missing) this.#addMissing(key, each)
    return undefined
  }

  /** Throws `Suspended` after the result was sent, or the reason why it was not. */
  async #throwSuspended(): Promise<never> {
    await this.#suspending
    throw new Suspended()
  }

  #toRequest(key: string, question: Question): QuestionRequest {
    const { revision, capabilities, binding, mayAsk } = this.#context
    const request = mayAsk
      ? toRequest(question, revision, capabilities)
      : `does not allow questions in ${binding.method}`
    if (typeof request !== 'string') return request
    throw new ToolError(`Question "${key}" cannot be sent: revision ${revision.id} ${request}`)
  }

  /**
   * The answer to this very question, given before or with this request. A
   * question that has changed has no answer, so that consent to one thing is
   * never taken as consent to another.
   */
  async #findAnswer(
    key: string,
    mark: string,
    question: Question,
  ): Promise<ValidAnswer | undefined> {
    const before = this.#answers.get(key)?.[mark]
    if (before !== undefined) {
      const reading = await parseAnswer(question, before)
      if (!('invalid' in reading)) return reading
    }
    const response = Object.hasOwn(this.#responses, key) ? this.#responses[key] : undefined
    // Without a state it is not known what it answers: then it is used for one question.
    const other =
      this.#previousState === undefined
        ? this.#answers.has(key)
        : this.#previousState.asked[key] !== mark
    if (response === undefined || other) return undefined
    const reading = await parseAnswer(question, response)
    if ('invalid' in reading) return undefined
    this.#answers.set(key, { ...this.#answers.get(key), [mark]: response })
    return reading
  }

  #addMissing(key: string, missing: { request: QuestionRequest; digest: string }): void {
    const other = this.#missing.get(key)
    if (other !== undefined && other.digest !== missing.digest)
      throw new TypeError(`Two different questions are called "${key}"; give each its own key`)
    this.#missing.set(key, missing)
  }

  /** Suspends the call: with the questions of this turn, and the recorded steps. */
  async #end(): Promise<void> {
    try {
      await Promise.race([this.#settled(), aborted(this.#context.signal)])
      const { key, attempt } = this
      const suspension = this.#required() ?? {
        key,
        attempt,
        questions: this.#missing,
        answers: Object.fromEntries(this.#answers),
        steps: this.#steps.recorded,
      }
      const redirected = await this.#redirected?.(suspension)
      if (redirected !== true) await this.#suspend(suspension)
      this.#suspended = true
    } finally {
      this.#ending = true
      this.#stopped.abort(new Suspended())
    }
  }

  /**
   * Resolves when no step is running and every question is decided, however long that takes: a step whose result is not in
   * the state would be run again. Transports keep the connection alive meanwhile.
   */
  async #settled(): Promise<void> {
    do {
      // Questions and steps that begin in this turn belong to it too.
      await new Promise((resolve) => setTimeout(resolve, 0))
      await Promise.all(this.#pendingLookups)
      // If the client cannot be asked, the error is sent immediately and the steps are aborted.
      if (this.#required() !== undefined) break
      await this.#steps.settled()
    } while (this.#pendingLookups.size > 0 || this.#steps.running)
    // In the same turn: a later step would be run again.
    this.#ending = true
  }

  #required(): RpcError | undefined {
    const { capabilities } = this.#context
    const requiredCapabilities: Record<string, object> = {}
    for (const { request } of this.#missing.values()) {
      for (const [name, parts] of Object.entries(missingCapabilities(capabilities, request) ?? {}))
        requiredCapabilities[name] = { ...requiredCapabilities[name], ...parts }
    }
    const names = Object.keys(requiredCapabilities)
    if (names.length === 0) return undefined
    return new RpcError(
      MISSING_CLIENT_CAPABILITY,
      `This request needs the client capability ${names.join(', ')}; declare it in _meta if the client has it`,
      { requiredCapabilities },
    )
  }
}

/** Rejects when the call is cancelled or timed out. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const abort = () => reject(abortError(signal.reason))
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { once: true })
  })
}

function answerValue(key: string, question: Question, reading: ValidAnswer): unknown {
  if ('value' in reading) return reading.value
  if (question.optional === true) return undefined
  throw declinedError(key, reading.declined)
}

import { INVALID_PARAMS, RpcError, asError } from '../../jsonrpc/errors.js'
import { ignore } from '../../jsonrpc/hook.js'
import { type Params, isObject } from '../../jsonrpc/message.js'
import { MISSING_CLIENT_CAPABILITY } from '../../protocol/errors.js'
import { describeResult } from '../../protocol/revisions/project.js'
import {
  type Asking,
  Declined,
  type Question,
  type AskContext,
  type StepValue,
  Suspended,
} from '../ask.js'
import { ToolError } from '../failure.js'
import { type QuestionRequest, type Reading, lacking, read, toRequest } from './questions.js'
import { type State, digest, openState, sealState } from './state.js'
import { Steps } from './steps.js'

/**
 * Asks by an `input_required` result: the call ends, and a later request runs
 * it again from the top, with the answers and the finished steps.
 */
export class AskByResult implements Asking {
  readonly key: string
  readonly attempt: number
  readonly #context: AskContext
  readonly #before: State | undefined
  readonly #responses: Params
  readonly #steps: Steps
  readonly #stopped = new AbortController()
  /** The answers so far: by key, then by the digest of the question. */
  readonly #answers = new Map<string, Readonly<Record<string, unknown>>>()
  /** The questions to ask, with their digests. */
  readonly #open = new Map<string, { request: QuestionRequest; digest: string }>()
  /** Pending look-ups of answers. */
  readonly #undecided = new Set<Promise<unknown>>()
  #suspending: Promise<void> | undefined
  /** The result is being made: later questions and steps are not part of it. */
  #fixed = false
  #suspended = false

  constructor(context: AskContext, before: State | undefined, responses: Params) {
    this.#context = context
    this.#before = before
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
    { requestState, inputResponses = {} }: Params,
  ): Promise<AskByResult> {
    if (!isObject(inputResponses))
      throw new RpcError(INVALID_PARAMS, 'Invalid params: "inputResponses" must be an object')
    const before = requestState === undefined ? undefined : await openState(context, requestState)
    return new AskByResult(context, before, inputResponses)
  }

  get suspended(): boolean {
    return this.#suspended
  }

  async step<Value extends StepValue>(
    key: string,
    run: (signal: AbortSignal) => Value | Promise<Value>,
  ): Promise<Value> {
    if (this.#fixed) return await this.#late()
    return await this.#steps.step(key, run)
  }

  async ask(questions: Readonly<Record<string, Question>>): Promise<Record<string, unknown>> {
    this.#steps.notWithin('A question')
    if (this.#fixed) return await this.#late()
    const deciding = this.#decide(questions)
    const decided: Promise<unknown> = deciding
      .then(ignore, ignore)
      .then(() => this.#undecided.delete(decided))
    this.#undecided.add(decided)
    const answers = await deciding
    if (answers !== undefined) return answers
    if (!this.#fixed) this.#suspending ??= this.#end()
    return await this.#late()
  }

  /** The answers, if all of them are known; otherwise the missing ones are asked for. */
  async #decide(
    questions: Readonly<Record<string, Question>>,
  ): Promise<Record<string, unknown> | undefined> {
    const answers = new Map<string, unknown>()
    const missing = new Map<string, { request: QuestionRequest; digest: string }>()
    for (const [key, question] of Object.entries(questions)) {
      const request = this.#toRequest(key, question)
      const mark = await digest([request.method, request.params])
      const reading = await this.#findAnswer(key, mark, question)
      if (reading !== undefined) answers.set(key, take(key, question, reading))
      else missing.set(key, { request, digest: mark })
    }
    if (missing.size === 0) return Object.fromEntries(answers)
    // Only when all are valid: a handler may ask something else instead.
    if (!this.#fixed) for (const [key, each] of missing) this.#miss(key, each)
    return undefined
  }

  /** Throws `Suspended` after the result was sent, or the reason why it was not. */
  async #late(): Promise<never> {
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
  async #findAnswer(key: string, mark: string, question: Question): Promise<Reading | undefined> {
    const before = this.#answers.get(key)?.[mark]
    if (before !== undefined) {
      const reading = await read(question, before)
      if (!('wrong' in reading)) return reading
    }
    const response = Object.hasOwn(this.#responses, key) ? this.#responses[key] : undefined
    // Without a state it is not known what it answers: then it is used for one question.
    const other =
      this.#before === undefined ? this.#answers.has(key) : this.#before.asked[key] !== mark
    if (response === undefined || other) return undefined
    const reading = await read(question, response)
    if ('wrong' in reading) return undefined
    this.#answers.set(key, { ...this.#answers.get(key), [mark]: response })
    return reading
  }

  #miss(key: string, missing: { request: QuestionRequest; digest: string }): void {
    const other = this.#open.get(key)
    if (other !== undefined && other.digest !== missing.digest)
      throw new TypeError(`Two different questions are called "${key}"; give each its own key`)
    this.#open.set(key, missing)
  }

  /** Ends the call with `input_required`: the questions of this turn, and the recorded steps. */
  async #end(): Promise<void> {
    const { signal, revision, server } = this.#context
    try {
      await Promise.race([this.#settled(), aborted(signal)])
      const required = this.#required()
      if (required !== undefined) return this.#settle({ error: required })
      const inputRequests = Object.fromEntries(
        [...this.#open].map(([key, { request }]) => [
          key,
          { method: request.method, params: request.params },
        ]),
      )
      const requestState = await sealState(this.#context, await this.#state())
      const result = { resultType: 'input_required', inputRequests, requestState }
      this.#settle({ result: describeResult(revision, result, server, undefined) })
    } finally {
      this.#fixed = true
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
      await Promise.all(this.#undecided)
      // Where the client cannot be asked, the error is sent immediately and the steps are aborted.
      if (this.#required() !== undefined) break
      await this.#steps.settled()
    } while (this.#undecided.size > 0 || this.#steps.running)
    // In the same turn: a later step would be run again.
    this.#fixed = true
  }

  #settle(outcome: { result: object } | { error: RpcError }): void {
    this.#suspended = true
    this.#context.incoming.settle(outcome)
  }

  async #state(): Promise<State> {
    const { state, binding } = this.#context
    return {
      id: crypto.randomUUID(),
      key: this.key,
      attempt: this.attempt,
      expires: Date.now() + state.ttl,
      binding: await digest(binding),
      asked: Object.fromEntries([...this.#open].map(([key, each]) => [key, each.digest])),
      answers: Object.fromEntries(this.#answers),
      steps: this.#steps.recorded,
    }
  }

  #required(): RpcError | undefined {
    const { capabilities } = this.#context
    const requiredCapabilities: Record<string, object> = {}
    for (const { request } of this.#open.values()) {
      for (const [name, parts] of Object.entries(lacking(capabilities, request) ?? {}))
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
    const abort = () => reject(asError(signal.reason))
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { once: true })
  })
}

function take(key: string, question: Question, reading: Reading): unknown {
  if ('value' in reading) return reading.value
  if (question.optional === true) return undefined
  const how = 'declined' in reading && reading.declined === 'cancel' ? 'cancelled' : 'declined'
  throw new Declined(key, `The user ${how} "${key}"`)
}

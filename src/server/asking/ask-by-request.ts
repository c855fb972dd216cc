import { Deadline } from '../../jsonrpc/deadline.js'
import { type ErrorCode, RpcError, abortError, withCode } from '../../jsonrpc/errors.js'
import { truncate } from '../../jsonrpc/truncate.js'
import { type Asking, type Question, type AskContext, type StepValue } from '../ask.js'
import { ToolError } from '../tool-error.js'
import {
  type QuestionRequest,
  type ParsedAnswer,
  declinedError,
  missingCapabilities,
  toRequest,
  parseAnswer,
} from './questions.js'
import { Steps } from './steps.js'
import { waitingQuestions } from './waiting-questions.js'

/** How often a question is sent to a client whose answers are invalid. */
const ATTEMPTS = 3

/** The error code of clients whose user refused. */
const USER_REJECTED = -1

/** Asks by requests to the client, and waits for the responses. */
export class AskByRequest implements Asking {
  readonly key: string
  readonly attempt = 1
  readonly suspended = false
  readonly #context: AskContext
  /** Created when it is first needed: many calls may wait. */
  #steps: Steps | undefined

  constructor(context: AskContext) {
    this.#context = context
    this.key = context.key
  }

  step<Value extends StepValue>(
    key: string,
    run: (signal: AbortSignal) => Value | Promise<Value>,
  ): Promise<Value> {
    const { state } = this.#context
    this.#steps ??= new Steps(state.maxBytes, () => this.#context.signal)
    return this.#steps.step(key, run)
  }

  async ask(questions: Readonly<Record<string, Question>>): Promise<Record<string, unknown>> {
    this.#steps?.assertNotInStep('call.ask()')
    const prepared = Object.entries(questions).map(
      ([key, question]) => [key, question, this.#prepare(key, question)] as const,
    )
    const principal = this.#context.incoming.principal?.id
    waitingQuestions.add(prepared.length, principal)
    // When one fails, the others are cancelled.
    const others = prepared.length > 1 ? new AbortController() : undefined
    const { ended } = this.#context.incoming
    const signal = others === undefined ? ended : AbortSignal.any([ended, others.signal])
    const asked = prepared.map(
      async ([key, question, request]) =>
        [key, await this.#ask(key, question, request, signal)] as const,
    )
    try {
      return Object.fromEntries(await this.#context.waiting(Promise.all(asked)))
    } catch (error) {
      others?.abort(error)
      throw error
    } finally {
      waitingQuestions.remove(prepared.length, principal)
    }
  }

  #prepare(key: string, question: Question): QuestionRequest {
    const { revision, capabilities } = this.#context
    const request = toRequest(question, revision, capabilities)
    if (typeof request === 'string')
      throw new ToolError(`Question "${key}" cannot be sent: revision ${revision.id} ${request}`)
    if (missingCapabilities(capabilities, request) === undefined) return request
    throw new ToolError(
      `Question "${key}" cannot be sent: the client has not declared the capability ${Object.keys(request.requires).join(', ')} that ${request.method} needs`,
    )
  }

  async #ask(
    key: string,
    question: Question,
    { method, params }: QuestionRequest,
    signal: AbortSignal,
  ): Promise<unknown> {
    const { incoming, state } = this.#context
    let problem = ''
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const deadline = new Deadline({ idle: state.ttl })
      const answer = incoming.ask(method, params, { signal, deadline })
      const reading = await answer.then(
        (response) => parseAnswer(question, response),
        (error: unknown) => declinedOrThrow(key, error, this.#context.signal),
      )
      if ('value' in reading) return reading.value
      if ('declined' in reading) {
        if (question.optional === true) return undefined
        throw declinedError(key, reading.declined)
      }
      problem = reading.invalid
    }
    throw new ToolError(`The client's answer to "${key}" is invalid: ${truncate(problem)}`)
  }
}

/** A question that gets no answer is no failure of the handler, unless its call was stopped: that is then the reason. */
function declinedOrThrow(key: string, error: unknown, signal: AbortSignal): ParsedAnswer {
  if (signal.aborted) throw abortError(signal.reason)
  if (error instanceof RpcError && error.code === USER_REJECTED) return { declined: 'decline' }
  const { message, code } = abortError(error) as Error & { code?: ErrorCode } // or of an RpcError
  const text = `The client could not answer "${key}": ${truncate(message)}`
  const failure = new ToolError(text, { cause: error })
  throw typeof code === 'string' ? withCode(code, failure) : failure
}

import type { ExtensionConnection } from '../../client/extension.js'
import { withCode } from '../../jsonrpc/errors.js'
import { isObject } from '../../jsonrpc/message.js'
import { truncateJson } from '../../jsonrpc/truncate.js'
import { digest } from '../../server/asking/state.js'
import type { ReceivedTask } from './client-task-state.js'

/** Maximum questions of one task, and characters of their keys, which are kept. */
const MAX_QUESTIONS = 1000
const MAX_KEY = 1024

interface Question {
  /** A digest of the request: a key must not come back with another one. */
  readonly digest: string
  /** Ends the question of the user; undefined when it was answered, or is no longer asked. */
  asking: AbortController | undefined
  answered: boolean
}

export interface QuestionsOptions {
  answer: ExtensionConnection['answer']
  /** Sends answers to the server (`tasks/update`). */
  send(inputResponses: Readonly<Record<string, unknown>>): Promise<unknown>
  /** A question cannot be answered. */
  failed(error: unknown): void
}

/** The questions of one task. Each is asked and answered once, however often the server repeats it; answers are sent as they come. */
export class TaskQuestions {
  readonly #options: QuestionsOptions
  readonly #known = new Map<string, Question>()
  #asked = 0
  /** Answers that were not sent yet. */
  readonly #ready = new Map<string, unknown>()
  #sending = false
  #ended = false

  constructor(options: QuestionsOptions) {
    this.#options = options
  }

  /** Asks what a state asks for. `complete`: what it does not ask for is no longer needed. */
  async see({ status, inputRequests }: ReceivedTask, complete: boolean): Promise<void> {
    const asks = status.status === 'input_required'
    if (asks && !isObject(inputRequests))
      throw invalid('A task needs input but has no "inputRequests"')
    const open = new Map(asks && isObject(inputRequests) ? Object.entries(inputRequests) : [])
    if (open.size > MAX_QUESTIONS) throw tooMany()
    const marked = await Promise.all(
      [...open].map(async ([key, request]) => ({ key, request, mark: await digest(request) })),
    )
    for (const { key, request, mark } of marked) this.#ask(key, request, mark)
    if (!complete) return
    for (const [key, question] of this.#known) {
      if (open.has(key)) continue
      question.asking?.abort(new Error('The server no longer needs the answer'))
      question.asking = undefined
    }
  }

  /** Nothing more is asked or sent. */
  end(): void {
    this.#ended = true
    this.#ready.clear()
    for (const { asking } of this.#known.values())
      asking?.abort(new Error('The task is no longer waited for'))
  }

  #ask(key: string, request: unknown, mark: string): void {
    const before = this.#known.get(key)
    if (before !== undefined && before.digest !== mark)
      throw invalid(`The task asks another question with the key ${truncateJson(key)}`)
    if (this.#ended || before?.answered === true || before?.asking !== undefined) return
    if (++this.#asked > MAX_QUESTIONS) throw tooMany()
    if (key.length > MAX_KEY)
      throw invalid(`The task asks a question with a key of more than ${MAX_KEY} characters`)
    const asking = new AbortController()
    const question: Question = { digest: mark, asking, answered: false }
    this.#known.set(key, question)
    this.#answer(key, request, question, asking.signal).catch((error: unknown) => {
      if (!asking.signal.aborted) this.#options.failed(error)
    })
  }

  async #answer(
    key: string,
    request: unknown,
    question: Question,
    signal: AbortSignal,
  ): Promise<void> {
    const responses = await this.#options.answer(Object.fromEntries([[key, request]]), signal)
    signal.throwIfAborted()
    question.asking = undefined
    question.answered = true
    this.#ready.set(key, responses[key])
    this.#send().catch((error: unknown) => this.#options.failed(error))
  }

  /** Answers that are ready at the same time are sent together. */
  async #send(): Promise<void> {
    if (this.#sending) return
    this.#sending = true
    try {
      await new Promise((resolve) => setTimeout(resolve, 0))
      while (this.#ready.size > 0) {
        const responses = Object.fromEntries(this.#ready)
        this.#ready.clear()
        await this.#options.send(responses)
      }
    } finally {
      this.#sending = false
    }
  }
}

function tooMany(): TypeError {
  return invalid(`The task asks more than ${MAX_QUESTIONS} questions`)
}

function invalid(message: string): TypeError {
  return withCode('INVALID_RESPONSE', new TypeError(message))
}

import { abortError } from '../../jsonrpc/errors.js'
import { ignore } from '../../jsonrpc/hook.js'
import { asyncStorage } from '../../runtime.js'
import { type Json, type StepValue, Suspended } from '../ask.js'
import { ToolError, isToolError } from '../tool-error.js'

/** The outcome of a step: its value, or the message of its ToolError. */
export type Recorded = { readonly value?: Json } | { readonly error: string }

/** The steps of the call whose step is running; undefined if the runtime cannot tell. */
const within = asyncStorage<Steps>()

/** The steps of one call: each is run once, and its outcome is reused when the call is run again. */
export class Steps {
  readonly #maxBytes: number
  readonly #signal: () => AbortSignal
  readonly #recorded: Map<string, Recorded>
  readonly #started = new Set<string>()
  readonly #running = new Set<Promise<unknown>>()

  constructor(
    maxBytes: number,
    signal: () => AbortSignal,
    recorded: Readonly<Record<string, Recorded>> = {},
  ) {
    this.#maxBytes = maxBytes
    this.#signal = signal
    this.#recorded = new Map(Object.entries(recorded))
  }

  /** The outcomes of finished steps. */
  get recorded(): Record<string, Recorded> {
    return Object.fromEntries(this.#recorded)
  }

  /** The outcome of one finished step. */
  outcomeOf(key: string): Recorded | undefined {
    return this.#recorded.get(key)
  }

  /** Throws within a step of this call: steps cannot be nested, nor ask. */
  assertNotInStep(what: string): void {
    if (within?.getStore() === this)
      throw new TypeError(
        `${what} cannot be called inside a step; call it before or after the step`,
      )
  }

  async step<Value extends StepValue>(
    key: string,
    run: (signal: AbortSignal) => Value | Promise<Value>,
  ): Promise<Value> {
    this.assertNotInStep('call.step()')
    if (this.#started.has(key))
      throw new TypeError(`There are two steps "${key}" in this call; give each its own key`)
    this.#started.add(key)
    const known = this.#recorded.get(key)
    if (known !== undefined) return replay(known) as Value // what was recorded under this key
    const running = this.#run(key, run)
    const settled: Promise<unknown> = running
      .then(ignore, ignore)
      .then(() => this.#running.delete(settled))
    this.#running.add(settled)
    return await running
  }

  get running(): boolean {
    return this.#running.size > 0
  }

  /** Resolves when the running steps have finished. */
  async settled(): Promise<void> {
    await Promise.all(this.#running)
  }

  async #run<Value extends StepValue>(
    key: string,
    run: (signal: AbortSignal) => Value | Promise<Value>,
  ): Promise<Value> {
    const signal = this.#signal()
    // A handler may go on after its call was cancelled: what it does next would be repeated.
    if (signal.aborted) throw abortError(signal.reason)
    const begin = () => run(signal)
    try {
      const value = await (within === undefined ? begin() : within.run(this, begin))
      const recorded = value === undefined ? {} : { value: this.#asJson(key, value) }
      this.#recorded.set(key, recorded)
      return replay(recorded) as Value // the same, as JSON carries it
    } catch (error) {
      if (isToolError(error) && !(error instanceof Suspended))
        this.#recorded.set(key, { error: error.message })
      throw error
    }
  }

  /** The value after a round trip through JSON, so that it is the same in every revision. */
  #asJson(key: string, value: unknown): Json {
    let text: string | undefined
    try {
      text = JSON.stringify(value)
    } catch {
      // It is circular, or not JSON.
    }
    if (text === undefined || !isJson(value))
      throw new TypeError(`The result of step "${key}" must be plain JSON`)
    if (text.length > this.#maxBytes)
      throw new TypeError(
        `The result of step "${key}" is too large: ${text.length} of at most ${this.#maxBytes} bytes`,
      )
    return JSON.parse(text) as Json // it was written just now
  }
}

function replay(recorded: Recorded): Json {
  if ('error' in recorded) throw new ToolError(recorded.error)
  return recorded.value
}

function isJson(value: unknown): boolean {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return true
    case 'number':
      return Number.isFinite(value)
    case 'object': {
      if (value === null) return true
      if (Array.isArray(value)) return value.every(isJson)
      const prototype: unknown = Object.getPrototypeOf(value)
      return (
        (prototype === Object.prototype || prototype === null) &&
        Object.values(value).every((each) => each === undefined || isJson(each))
      )
    }
    default:
      return false
  }
}

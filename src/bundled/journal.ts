import type { Middleware, Result } from '../index.js'

/** The name under which this server logs. */
export const LOGGER = 'ccmcp'

/** Counts the requests of a server, and logs them: to the caller, and with the request's id to the log of the process. */
export class Journal {
  // Not performance.now(): a first look at `performance` loads a module of Node, which costs a millisecond at the start.
  readonly #started = process.uptime()
  #served = 0

  /** How many requests there were, this one included. */
  get served(): number {
    return this.#served
  }

  get uptimeSeconds(): number {
    return process.uptime() - this.#started
  }

  /** What is answered at once stays so: answers and log messages keep their order. */
  readonly keep: Middleware = (call, next) => {
    this.#served++
    const { method, params, log } = call
    const name = method === 'tools/call' ? nameOf(params) : undefined
    if (name !== undefined) log.debug(`Calling tool: ${name}`, LOGGER)
    const served = (result: Result) => {
      if (result['isError'] === true)
        log.error(`Tool ${name} failed: ${textOf(result['content'])}`, LOGGER)
      return result
    }
    const failed = (error: unknown): never => {
      log.error(
        `${method} failed: ${error instanceof Error ? error.message : String(error)}`,
        LOGGER,
      )
      throw error
    }
    try {
      const result = next()
      return result instanceof Promise ? result.then(served, failed) : served(result)
    } catch (error) {
      return failed(error)
    }
  }
}

/** The tool that a call names; a caller may send anything. */
function nameOf({ name }: Readonly<Record<string, unknown>>): string {
  return typeof name === 'string' ? name.slice(0, 200).toWellFormed() : 'without a name'
}

/** What the model is told of a failure. */
function textOf(content: unknown): string {
  const [first] = Array.isArray(content) ? (content as { text?: unknown }[]) : [] // the blocks of a result
  return typeof first?.text === 'string' ? first.text : ''
}

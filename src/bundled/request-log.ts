import type { Middleware, Result } from '../index.js'

/** The `logger` of this server's log messages. */
export const LOGGER = 'ccmcp'

/** Counts the requests of a server and logs them to the client and to the process log. */
export class RequestLog {
  // Not performance.now(): the first access to `performance` loads a Node module, about 1 ms at start-up.
  readonly #started = process.uptime()
  #count = 0

  /** Number of requests so far, including the current one. */
  get count(): number {
    return this.#count
  }

  get uptimeSeconds(): number {
    return process.uptime() - this.#started
  }

  /** Synchronous handlers stay synchronous, so that responses and log messages keep their order. */
  readonly middleware: Middleware = (call, next) => {
    this.#count++
    const { method, params, log } = call
    const name = method === 'tools/call' ? nameOf(params) : undefined
    if (name !== undefined) log.debug(`Calling tool: ${name}`, LOGGER)
    const succeeded = (result: Result) => {
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
      return result instanceof Promise ? result.then(succeeded, failed) : succeeded(result)
    } catch (error) {
      return failed(error)
    }
  }
}

/** The name of the called tool. Clients may send any value. */
function nameOf({ name }: Readonly<Record<string, unknown>>): string {
  return typeof name === 'string' ? name.slice(0, 200).toWellFormed() : '(no name)'
}

/** The text of a failed result. */
function textOf(content: unknown): string {
  const [first] = Array.isArray(content) ? (content as { text?: unknown }[]) : [] // content blocks
  return typeof first?.text === 'string' ? first.text : ''
}

import type { Call, Prompt, Resource, Tool } from '../index.js'

/** The name under which this server logs. */
export const LOGGER = 'ccmcp'

/** Counts what is served, and logs it: to the caller, and with the request's id to the log of the process. */
export class Journal {
  readonly #started = performance.now()
  #served = 0

  /** How many calls of tools, reads of resources and builds of prompts there were. */
  get served(): number {
    return this.#served
  }

  get uptimeSeconds(): number {
    return (performance.now() - this.#started) / 1000
  }

  tool(definition: Tool): Tool {
    const { name, run } = definition
    return {
      ...definition,
      run: (input, call) => {
        call.log.debug(`Calling tool: ${name}`, LOGGER)
        return this.#keep(call, `Tool ${name} failed`, () => run?.(input, call))
      },
    }
  }

  resource(definition: Resource): Resource {
    return {
      ...definition,
      read: (variables, call) => this.#keep(call, `Reading ${definition.uri} failed`, () => definition.read(variables, call)),
    }
  }

  prompt(definition: Prompt): Prompt {
    return {
      ...definition,
      build: (given, call) => this.#keep(call, `Prompt ${definition.name} failed`, () => definition.build(given, call)),
    }
  }

  /** What is answered at once stays so: a promise is only waited for where there is one. */
  #keep<Result>(call: Call, failure: string, work: () => Result): Result {
    this.#served++
    const failed = (error: unknown): never => {
      call.log.error(`${failure}: ${error instanceof Error ? error.message : String(error)}`, LOGGER)
      throw error
    }
    try {
      const result = work()
      return result instanceof Promise ? (result.catch(failed) as Result) : result // the same promise, heard
    } catch (error) {
      return failed(error)
    }
  }
}

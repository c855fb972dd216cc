import { type Middleware, type Server, type Tool, ToolError, tool } from '../index.js'
import { READ_ONLY } from './hints.js'
import { type TemplateTool, checkTemplateTool, parametersOf, render } from './template.js'
import type { ToolFile } from './tool-file.js'

/** Maximum number of registered tools. */
const MAX_TOOLS = 100

export interface RegisteredToolsOptions {
  /** The names of built-in tools, including those that are not offered. */
  builtIn: ReadonlySet<string>
  file: ToolFile | undefined
}

/** The registration or removal of a tool. */
interface Change {
  readonly name: string
  /** Throws if the change is not possible. */
  readonly check: () => void
  /** Applies the change to the tools on disk. */
  readonly persist: (saved: readonly TemplateTool[]) => TemplateTool[]
  /** Applies the change to the server and returns the tool's result. */
  readonly apply: () => string
}

/** Tools that clients add at run time. */
export class RegisteredTools {
  readonly #options: RegisteredToolsOptions
  readonly #tools = new Map<string, TemplateTool>()
  /** Changes that are being written to disk, by tool name. */
  readonly #writing = new Map<string, Promise<unknown>>()
  /** Settles with the last change; changes are written one after the other. */
  #last: Promise<unknown> = Promise.resolve()
  #server: Server | undefined

  constructor(options: RegisteredToolsOptions) {
    this.#options = options
  }

  /** The tools `register_tool` and `unregister_tool`. */
  get definitions(): Tool[] {
    const text = (description: string) => ({ type: 'string', description }) as const
    return [
      tool({
        name: 'register_tool',
        title: 'Register tool',
        description:
          'Register a new tool that fills a text template. It can be called at once, by every client of this server.',
        input: {
          type: 'object',
          properties: {
            name: text('Name of the new tool: letters, digits, _ - .'),
            description: text('What the new tool is for'),
            template: text(
              'Text with placeholders, such as "The answer to {question} is 42"; each becomes a required argument',
            ),
          },
          required: ['name', 'description', 'template'],
        },
        annotations: {
          readOnlyHint: false,
          destructiveHint: false,
          idempotentHint: false,
          openWorldHint: false,
        },
        run: ({ name, description, template }, { signal }) =>
          this.#register({ name, description, template }, signal),
      }),
      tool({
        name: 'unregister_tool',
        title: 'Unregister tool',
        description:
          'Remove a tool that was registered with register_tool. Built-in tools cannot be removed.',
        input: {
          type: 'object',
          properties: { name: text('Name of the registered tool') },
          required: ['name'],
        },
        annotations: {
          readOnlyHint: false,
          destructiveHint: true,
          idempotentHint: false,
          openWorldHint: false,
        },
        run: ({ name }, { signal }) => this.#unregister(name, signal),
      }),
    ]
  }

  /** Sets the server to which tools are added, and adds the persisted ones. */
  attach(server: Server): void {
    this.#server = server
    const { file } = this.#options
    if (file === undefined) return
    for (const each of file.load(this.#check)) this.#add(each)
    server.use(this.#waitForChange)
  }

  descriptionOf(name: string): string | undefined {
    return this.#tools.get(name)?.description
  }

  /** Delays a call of a tool that is being registered or removed until the change is written. */
  readonly #waitForChange: Middleware = ({ method, params }, next) => {
    const name = method === 'tools/call' ? params['name'] : undefined
    const writing = typeof name === 'string' ? this.#writing.get(name) : undefined
    if (writing === undefined) return next()
    const callAfterwards = async () => {
      await writing
      return next()
    }
    return callAfterwards()
  }

  #register(definition: TemplateTool, signal: AbortSignal): string | Promise<string> {
    checkTemplateTool(definition)
    const { name, template } = definition
    this.#checkNotBuiltIn(name)
    return this.#apply(
      {
        name,
        check: () => {
          if (this.#tools.has(name))
            throw new ToolError(
              `The tool ${name} is already registered; unregister it first to replace it`,
            )
          checkToolCount(this.#tools.size)
        },
        persist: (saved) => {
          const others = saved.filter((each) => each.name !== name)
          checkToolCount(others.length)
          return [...others, definition]
        },
        apply: () => {
          this.#add(definition)
          const parameters = parametersOf(template)
          return `Registered tool ${name} (${parameters.length === 0 ? 'no arguments' : `arguments: ${parameters.join(', ')}`})`
        },
      },
      signal,
    )
  }

  #unregister(name: string, signal: AbortSignal): string | Promise<string> {
    if (this.#options.builtIn.has(name))
      throw new ToolError(`The tool ${name} is built in and cannot be removed`)
    return this.#apply(
      {
        name,
        check: () => {
          if (!this.#tools.has(name))
            throw new ToolError(`There is no registered tool ${JSON.stringify(name.slice(0, 100))}`)
        },
        persist: (saved) => saved.filter((each) => each.name !== name),
        apply: () => {
          this.#tools.delete(name)
          this.#server?.tools.remove(name)
          return `Unregistered tool ${name}`
        },
      },
      signal,
    )
  }

  /** Applies a change: synchronously without a file, otherwise after it has been written to disk. */
  #apply(change: Change, signal: AbortSignal): string | Promise<string> {
    const { file } = this.#options
    if (file === undefined) {
      change.check()
      return change.apply()
    }
    const applied = this.#applyAfter(this.#last, file, change, signal)
    const settled = applied.then(
      () => undefined,
      () => undefined,
    )
    this.#last = settled
    this.#writing.set(change.name, settled)
    return applied.finally(() => {
      if (this.#writing.get(change.name) === settled) this.#writing.delete(change.name)
    })
  }

  async #applyAfter(
    last: Promise<unknown>,
    file: ToolFile,
    change: Change,
    signal: AbortSignal,
  ): Promise<string> {
    const requestedAt = performance.now()
    await last
    change.check()
    await this.#save(file, change, signal, requestedAt)
    return change.apply()
  }

  /** Writes a change to the file, preserving the changes of other processes. */
  async #save(
    file: ToolFile,
    { persist }: Change,
    signal: AbortSignal,
    requestedAt: number,
  ): Promise<void> {
    try {
      await file.update({
        change: persist,
        ifDamaged: () => [...this.#tools.values()],
        check: this.#check,
        signal,
        requestedAt,
      })
    } catch (error) {
      if (error instanceof ToolError) throw error
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
      throw new ToolError(`The change could not be saved (${code}); nothing was changed`)
    }
  }

  readonly #check = ({ name }: TemplateTool, index: number): void => {
    this.#checkNotBuiltIn(name)
    if (index >= MAX_TOOLS) throw new TypeError(`the file has more than ${MAX_TOOLS} tools`)
  }

  #checkNotBuiltIn(name: string): void {
    if (this.#options.builtIn.has(name))
      throw new ToolError(`The tool ${name} is built in and cannot be replaced`)
  }

  #add(definition: TemplateTool): void {
    const { name, description, template } = definition
    const parameters = parametersOf(template)
    const properties = Object.fromEntries(
      parameters.map((parameter) => [parameter, { type: 'string' }]),
    )
    this.#tools.set(name, definition)
    this.#server?.tools.add({
      name,
      description,
      annotations: READ_ONLY,
      input: { type: 'object', properties, required: parameters },
      run: (values) => render(template, values as Record<string, string>), // validated against the schema above
    })
  }
}

function checkToolCount(count: number): void {
  if (count >= MAX_TOOLS)
    throw new ToolError(
      `The limit of ${MAX_TOOLS} registered tools is reached; unregister one first`,
    )
}

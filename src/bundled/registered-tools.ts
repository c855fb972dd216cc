import { type Middleware, type Server, type Tool, ToolError, tool } from '../index.js'
import { type TextTool, checkTextTool, parametersOf, render } from './template.js'
import type { ToolFile } from './tool-file.js'

/** The most tools that can be registered. */
const MAX_TOOLS = 100

export interface RegisteredToolsOptions {
  /** The names that are taken by the server's own tools, also where those are left out. */
  builtIn: ReadonlySet<string>
  file: ToolFile | undefined
}

/** A tool that is to be registered or removed. */
interface Change {
  readonly name: string
  /** Throws where the change is not possible. */
  readonly check: () => void
  /** The tools to keep on disk. */
  readonly keep: (kept: readonly TextTool[]) => TextTool[]
  /** Carries it out, and says so. */
  readonly apply: () => string
}

/** Tools that callers add while the server runs. */
export class RegisteredTools {
  readonly #options: RegisteredToolsOptions
  readonly #tools = new Map<string, TextTool>()
  /** Changes that are being written to the disk, by the name of their tool. */
  readonly #writing = new Map<string, Promise<unknown>>()
  /** Ends with the last of them: they are made one after the other. */
  #last: Promise<unknown> = Promise.resolve()
  #server: Server | undefined

  constructor(options: RegisteredToolsOptions) {
    this.#options = options
  }

  /** The two tools by which callers do it. */
  get definitions(): Tool[] {
    const text = (description: string) => ({ type: 'string', description }) as const
    return [
      tool({
        name: 'register_tool',
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

  /** Names the server that the tools are added to, and adds those that were kept. */
  attach(server: Server): void {
    this.#server = server
    const { file } = this.#options
    if (file === undefined) return
    for (const each of file.load(this.#allowed)) this.#add(each)
    server.use(this.#inOrder)
  }

  descriptionOf(name: string): string | undefined {
    return this.#tools.get(name)?.description
  }

  /** A call of a tool that is being registered or removed waits for that; all others go on meanwhile. */
  readonly #inOrder: Middleware = ({ method, params }, next) => {
    const name = method === 'tools/call' ? params['name'] : undefined
    const writing = typeof name === 'string' ? this.#writing.get(name) : undefined
    if (writing === undefined) return next()
    const afterwards = async () => {
      await writing
      return next()
    }
    return afterwards()
  }

  #register(definition: TextTool, signal: AbortSignal): string | Promise<string> {
    checkTextTool(definition)
    const { name, template } = definition
    this.#refuseBuiltIn(name)
    return this.#make(
      {
        name,
        check: () => {
          if (this.#tools.has(name))
            throw new ToolError(
              `The tool ${name} is registered already; unregister it first to replace it`,
            )
          refuseMore(this.#tools.size)
        },
        keep: (kept) => {
          const others = kept.filter((each) => each.name !== name)
          refuseMore(others.length)
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
    return this.#make(
      {
        name,
        check: () => {
          if (!this.#tools.has(name))
            throw new ToolError(`There is no registered tool ${JSON.stringify(name.slice(0, 100))}`)
        },
        keep: (kept) => kept.filter((each) => each.name !== name),
        apply: () => {
          this.#tools.delete(name)
          this.#server?.tools.remove(name)
          return `Unregistered tool ${name}`
        },
      },
      signal,
    )
  }

  /** At once where nothing is kept on disk, and otherwise when it is on the disk: nothing is changed that cannot be kept. */
  #make(change: Change, signal: AbortSignal): string | Promise<string> {
    const { file } = this.#options
    if (file === undefined) {
      change.check()
      return change.apply()
    }
    const made = this.#makeAfter(this.#last, file, change, signal)
    const settled = made.then(
      () => undefined,
      () => undefined,
    )
    this.#last = settled
    this.#writing.set(change.name, settled)
    return made.finally(() => {
      if (this.#writing.get(change.name) === settled) this.#writing.delete(change.name)
    })
  }

  async #makeAfter(
    last: Promise<unknown>,
    file: ToolFile,
    change: Change,
    signal: AbortSignal,
  ): Promise<string> {
    const since = performance.now()
    await last
    change.check()
    await this.#keep(file, change, signal, since)
    return change.apply()
  }

  /** Another process may have changed the file: what it did stays. */
  async #keep(file: ToolFile, { keep }: Change, signal: AbortSignal, since: number): Promise<void> {
    try {
      await file.update({
        change: keep,
        ifDamaged: () => [...this.#tools.values()],
        allowed: this.#allowed,
        signal,
        since,
      })
    } catch (error) {
      if (error instanceof ToolError) throw error
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
      throw new ToolError(`The change cannot be kept on disk (${code}); nothing was changed`)
    }
  }

  readonly #allowed = ({ name }: TextTool, index: number): void => {
    this.#refuseBuiltIn(name)
    if (index >= MAX_TOOLS) throw new TypeError(`there are more than ${MAX_TOOLS}`)
  }

  #refuseBuiltIn(name: string): void {
    if (this.#options.builtIn.has(name))
      throw new ToolError(`The tool ${name} is built in and cannot be replaced`)
  }

  #add(definition: TextTool): void {
    const { name, description, template } = definition
    const parameters = parametersOf(template)
    const properties = Object.fromEntries(
      parameters.map((parameter) => [parameter, { type: 'string' }]),
    )
    this.#tools.set(name, definition)
    this.#server?.tools.add({
      name,
      description,
      input: { type: 'object', properties, required: parameters },
      run: (values) => render(template, values as Record<string, string>), // checked against the schema above
    })
  }
}

function refuseMore(count: number): void {
  if (count >= MAX_TOOLS)
    throw new ToolError(
      `${MAX_TOOLS} tools are registered, which is the most; unregister one first`,
    )
}

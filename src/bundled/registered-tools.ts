import { type Server, type Tool, ToolError, tool } from '../index.js'
import { type TextTool, checkTextTool, parametersOf, render } from './template.js'
import type { ToolFile } from './tool-file.js'

/** The most tools that can be registered. */
const MAX_TOOLS = 100

export interface RegisteredToolsOptions {
  /** The names that are taken by the server's own tools, also where those are left out. */
  builtIn: ReadonlySet<string>
  file: ToolFile | undefined
}

/** Tools that callers add while the server runs. */
export class RegisteredTools {
  readonly #options: RegisteredToolsOptions
  readonly #tools = new Map<string, TextTool>()
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
        description: 'Register a new tool that fills a text template. It can be called at once, by every client of this server.',
        input: {
          type: 'object',
          properties: {
            name: text('Name of the new tool: letters, digits, _ - .'),
            description: text('What the new tool is for'),
            template: text('Text with placeholders, such as "The answer to {question} is 42"; each becomes a required argument'),
          },
          required: ['name', 'description', 'template'],
        },
        annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
        run: ({ name, description, template }) => this.#register({ name, description, template }),
      }),
      tool({
        name: 'unregister_tool',
        description: 'Remove a tool that was registered with register_tool. Built-in tools cannot be removed.',
        input: { type: 'object', properties: { name: text('Name of the registered tool') }, required: ['name'] },
        annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: false },
        run: ({ name }) => this.#unregister(name),
      }),
    ]
  }

  /** Names the server that the tools are added to, and adds those that were kept. */
  attach(server: Server): void {
    this.#server = server
    let count = 0
    const kept = this.#options.file?.load(({ name }) => {
      this.#refuseBuiltIn(name)
      if (++count > MAX_TOOLS) throw new TypeError(`there are more than ${MAX_TOOLS}`)
    })
    for (const each of kept ?? []) this.#add(each)
  }

  #register(definition: TextTool): string {
    checkTextTool(definition)
    const { name, template } = definition
    this.#refuseBuiltIn(name)
    if (this.#tools.has(name)) throw new ToolError(`The tool ${name} is registered already; unregister it first to replace it`)
    if (this.#tools.size >= MAX_TOOLS) throw new ToolError(`${MAX_TOOLS} tools are registered, which is the most; unregister one first`)
    this.#keep((kept) => [...kept.filter((each) => each.name !== name), definition])
    this.#add(definition)
    const parameters = parametersOf(template)
    return `Registered tool ${name} (${parameters.length === 0 ? 'no arguments' : `arguments: ${parameters.join(', ')}`})`
  }

  #unregister(name: string): string {
    if (this.#options.builtIn.has(name)) throw new ToolError(`The tool ${name} is built in and cannot be removed`)
    if (!this.#tools.has(name)) throw new ToolError(`There is no registered tool ${JSON.stringify(name.slice(0, 100))}`)
    this.#keep((kept) => kept.filter((each) => each.name !== name))
    this.#tools.delete(name)
    this.#server?.tools.remove(name)
    return `Unregistered tool ${name}`
  }

  #refuseBuiltIn(name: string): void {
    if (this.#options.builtIn.has(name)) throw new ToolError(`The tool ${name} is built in and cannot be replaced`)
  }

  #add(definition: TextTool): void {
    const { name, description, template } = definition
    const parameters = parametersOf(template)
    const properties = Object.fromEntries(parameters.map((parameter) => [parameter, { type: 'string' }]))
    this.#tools.set(name, definition)
    this.#server?.tools.add({
      name,
      description,
      input: { type: 'object', properties, required: parameters },
      run: (values) => render(template, values as Record<string, string>), // checked against the schema above
    })
  }

  /** Nothing is changed that cannot be kept. Another process may have changed the file: what it did stays. */
  #keep(change: (kept: readonly TextTool[]) => TextTool[]): void {
    try {
      this.#options.file?.update(change, () => [...this.#tools.values()])
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
      throw new ToolError(`The change cannot be kept on disk (${code}); nothing was changed`)
    }
  }
}

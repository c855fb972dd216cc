import { type Params, isObject, memberAt } from '../jsonrpc/message.js'
import type { LogEntry } from '../jsonrpc/log-entry.js'
import { truncateJson } from '../jsonrpc/truncate.js'
import { type HeaderParameter, headerParameters } from '../schema/headers.js'

type HeaderParams = Record<string, string | number | boolean>

/** Maximum characters of tool names and header parameters that are stored. */
const MAX_STORED = 4 * 1024 * 1024

/**
 * The arguments of tools that HTTP repeats in headers, as the listed input schemas say.
 * https://modelcontextprotocol.io/specification/2026-07-28/server/tools#x-mcp-header
 */
export class ToolHeaders {
  readonly #tools = new Map<string, { parameters: readonly HeaderParameter[]; size: number }>()
  #stored = 0
  readonly #report: (entry: LogEntry) => void

  constructor(report: (entry: LogEntry) => void) {
    this.#report = report
  }

  /** Remembers the tools of a page. Those with an invalid `x-mcp-header` are reported, and left out of the result. */
  rememberPage(page: Params): Params {
    const { tools } = page
    if (!Array.isArray(tools)) return page
    return { ...page, tools: tools.filter((tool: unknown) => this.#remember(tool)) }
  }

  /** The values for headers in the params of a `tools/call`, by the name of the header. */
  headerParamsFor(params: Params | undefined): HeaderParams | undefined {
    const tool = this.#tools.get(String(params?.['name']))
    if (tool === undefined) return undefined
    const values: HeaderParams = {}
    for (const { name, path } of tool.parameters) {
      const value = memberAt(params?.['arguments'], path)
      if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
        values[name] = value
    }
    return values
  }

  /** Beyond the limit a call is sent without the headers. */
  #store(name: string, parameters: readonly HeaderParameter[]): void {
    const size = name.length + JSON.stringify(parameters).length
    if (this.#stored + size > MAX_STORED) return
    this.#stored += size
    this.#tools.set(name, { parameters, size })
  }

  /** False if the tool must not be used. */
  #remember(tool: unknown): boolean {
    if (!isObject(tool) || typeof tool['name'] !== 'string') return true
    const { name, inputSchema } = tool
    this.#stored -= this.#tools.get(name)?.size ?? 0
    this.#tools.delete(name)
    try {
      const parameters = isObject(inputSchema) ? headerParameters(inputSchema) : []
      if (parameters.length > 0) this.#store(name, parameters)
      return true
    } catch (error) {
      this.#report({
        level: 'warning',
        message: `The tool ${truncateJson(name)} was left out: its x-mcp-header is not valid`,
        error,
      })
      return false
    }
  }
}

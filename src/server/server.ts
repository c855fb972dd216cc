import type { Icon, Implementation } from '../protocol/model.js'
import type { Call } from './call.js'
import type { Tool } from './define.js'
import { type ServedTool, prepareTools } from './features/served-tool.js'

export interface ServerOptions {
  name: string
  version: string
  title?: string
  description?: string
  websiteUrl?: string
  icons?: Icon[]
  /** What a model should know to use this server well. */
  instructions?: string
  tools?: readonly Tool[]
  /** One handler for all tools that have no `run` of their own. */
  handle?: (name: string, input: unknown, call: Call) => unknown
  /** An unknown revision in `initialize`: negotiate down (as MCP says), echo it, or refuse it. */
  unsupportedRevision?: 'negotiate' | 'echo' | 'reject'
  /** Arguments that do not fit the schema: a result that the model can act on, or error −32602. */
  invalidArguments?: 'result' | 'protocol'
  /** An exception in a tool that is no ToolError: a result with `isError`, or error −32603. */
  unexpectedErrors?: 'result' | 'protocol'
}

/** A server, defined: no connection is part of it, and any number may use it at once. */
export interface Server {
  readonly info: Implementation
  readonly instructions: string | undefined
  readonly tools: ReadonlyMap<string, ServedTool>
  readonly unsupportedRevision: 'negotiate' | 'echo' | 'reject'
  readonly invalidArguments: 'result' | 'protocol'
  readonly unexpectedErrors: 'result' | 'protocol'
}

const CHOICES: Readonly<Record<string, readonly string[]>> = {
  unsupportedRevision: ['negotiate', 'echo', 'reject'],
  invalidArguments: ['result', 'protocol'],
  unexpectedErrors: ['result', 'protocol'],
}

/** Makes a server of its definitions. Throws where one of them would mislead a client. */
export function createServer(options: ServerOptions): Server {
  const {
    instructions,
    tools = [],
    handle,
    unsupportedRevision = 'negotiate',
    invalidArguments = 'result',
    unexpectedErrors = 'result',
  } = options
  for (const [option, value] of Object.entries({ unsupportedRevision, invalidArguments, unexpectedErrors })) {
    const allowed = CHOICES[option] ?? []
    if (!allowed.includes(value))
      throw new TypeError(`createServer: "${option}" must be one of ${allowed.join(', ')}, not ${JSON.stringify(value)}`)
  }
  return {
    info: infoOf(options),
    instructions,
    tools: prepareTools(tools, handle),
    unsupportedRevision,
    invalidArguments,
    unexpectedErrors,
  }
}

function infoOf({ name, version, title, description, websiteUrl, icons }: ServerOptions): Implementation {
  for (const [field, value] of Object.entries({ name, version })) {
    if (typeof value !== 'string' || value === '') throw new TypeError(`createServer: "${field}" must be a non-empty string`)
  }
  const info: Implementation = { name, version }
  if (title !== undefined) info.title = title
  if (description !== undefined) info.description = description
  if (websiteUrl !== undefined) info.websiteUrl = websiteUrl
  if (icons !== undefined) info.icons = icons
  return info
}

import {
  type LogLevel,
  type Resource,
  type Server,
  type ServerOptions,
  type Tool,
  createServer,
  resource,
  tool,
} from '../index.js'
import { VERSION } from '../version.js'
import { fileTools, rootsAt } from './file-tools.js'
import { Journal, LOGGER } from './journal.js'
import { prompts } from './prompts.js'
import { RegisteredTools } from './registered-tools.js'
import type { ToolFile } from './tool-file.js'

export interface CcmcpOptions extends Pick<
  ServerOptions,
  'unsupportedRevision' | 'invalidArguments' | 'unexpectedErrors'
> {
  /** The directories that the file tools work in (default the working directory and that for temporary files); relative paths begin in the first. */
  roots?: readonly string[]
  /** Leaves `write_file` out. */
  readOnly?: boolean
  /** Keeps registered tools; without it they end with the process. */
  toolFile?: ToolFile
  /** Other files of the server that no file tool may touch, such as its log. */
  ownFiles?: readonly string[]
  /** Only these tools. */
  tools?: readonly string[]
  excludeTools?: readonly string[]
  /** The lowest level that clients are sent until they say otherwise (default `debug`). */
  logLevel?: LogLevel
  /** Takes what is to be known before any client is there (default: a line on stderr). */
  warn?: (message: string) => void
}

const greetings: readonly Tool[] = [
  tool({
    name: 'hello',
    description: 'Say hello to someone',
    input: {
      type: 'object',
      properties: { name: { type: 'string', description: 'Name to greet' } },
      required: ['name'],
    },
    run: ({ name }) => `Hello, ${name}!`,
  }),
  tool({
    name: 'add',
    description: 'Add two numbers',
    input: {
      type: 'object',
      properties: {
        a: { type: 'number', description: 'The first number' },
        b: { type: 'number', description: 'The second number' },
      },
      required: ['a', 'b'],
    },
    run: ({ a, b }) => String(a + b),
  }),
  tool({
    name: 'echo',
    description: 'Return the message unchanged',
    input: {
      type: 'object',
      properties: { message: { type: 'string', description: 'The message to return' } },
      required: ['message'],
    },
    run: ({ message }) => message,
  }),
]

/** The ready-to-run server of `ccmcp serve`. Throws a TypeError where an option cannot be obeyed. */
export function ccmcpServer(options: CcmcpOptions = {}): Server {
  const {
    roots,
    readOnly = false,
    toolFile: file,
    ownFiles = [],
    logLevel = 'debug',
    warn = warnOnStderr,
  } = options
  const { unsupportedRevision, invalidArguments, unexpectedErrors } = options
  const journal = new Journal()
  const builtIn = new Set<string>()
  const registered = new RegisteredTools({ builtIn, file })
  const own = file === undefined ? ownFiles : [file.path, ...ownFiles]
  const all = [
    ...greetings,
    ...fileTools({ roots: rootsAt(roots, warn), own, warn }),
    ...registered.definitions,
  ]
  for (const { name } of all) builtIn.add(name)
  const descriptionOf = (tool: string) =>
    all.find(({ name }) => name === tool)?.description ?? registered.descriptionOf(tool)
  const server = createServer({
    name: 'ccmcp',
    version: VERSION,
    tools: chosen(all, options),
    resources: about(() => server, descriptionOf, journal, readOnly),
    prompts,
    logLevel,
    onInitialized: ({ log }) => log.info('Server initialized', LOGGER),
    ...(unsupportedRevision === undefined ? {} : { unsupportedRevision }),
    ...(invalidArguments === undefined ? {} : { invalidArguments }),
    ...(unexpectedErrors === undefined ? {} : { unexpectedErrors }),
  })
  server.use(journal.keep)
  registered.attach(server)
  return server
}

function chosen(
  all: readonly Tool[],
  { tools, excludeTools = [], readOnly = false }: CcmcpOptions,
): Tool[] {
  const known = all.map(({ name }) => name)
  for (const [option, names] of Object.entries({ tools: tools ?? [], excludeTools })) {
    const unknown = names.find((name) => !known.includes(name))
    if (unknown !== undefined)
      throw new TypeError(
        `${option}: there is no tool ${JSON.stringify(unknown)}; there are ${known.join(', ')}`,
      )
  }
  const left = readOnly ? [...excludeTools, 'write_file'] : excludeTools
  return all.filter(
    ({ name }) => (tools === undefined || tools.includes(name)) && !left.includes(name),
  )
}

/** What the server tells about itself. */
function about(
  server: () => Server,
  descriptionOf: (tool: string) => string | undefined,
  journal: Journal,
  readOnly: boolean,
): Resource[] {
  return [
    resource({
      uri: 'config://server',
      name: 'config',
      description: 'Name, version and number of tools of this server',
      mimeType: 'application/json',
      read: () => JSON.stringify({ ...server().info, tools: server().tools.size, readOnly }),
    }),
    resource({
      uri: 'stats://usage',
      name: 'stats',
      description: 'What this server has served since it was started',
      mimeType: 'text/plain',
      read: () => `requests: ${journal.served}\nuptime: ${journal.uptimeSeconds.toFixed(3)} s`,
    }),
    resource({
      uri: 'help://commands',
      name: 'help',
      description: 'All tools and what they are for',
      mimeType: 'text/plain',
      read: () =>
        [...server().tools.keys()]
          .map((name) => `${name}: ${(descriptionOf(name) ?? '').replaceAll(/\s+/g, ' ')}`)
          .join('\n'),
    }),
  ]
}

/** For what is to be known before any client is there. */
export function warnOnStderr(message: string): void {
  // Not process.stderr.write: that ends the process where nobody reads stderr any more.
  console.error(JSON.stringify({ time: new Date().toISOString(), level: 'warning', message }))
}

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
import { READ_ONLY } from './hints.js'
import { RequestLog, LOGGER } from './request-log.js'
import { prompts } from './prompts.js'
import { RegisteredTools } from './registered-tools.js'
import type { ToolFile } from './tool-file.js'

export interface CcmcpOptions extends Pick<
  ServerOptions,
  'unsupportedRevision' | 'invalidArguments' | 'unexpectedErrors'
> {
  /** Directories the file tools may access (default: the working directory and the system's temporary directory). Relative paths start at the first. */
  roots?: readonly string[]
  /** Omits `write_file`. */
  readOnly?: boolean
  /** Persists registered tools; without it they are lost when the process exits. */
  toolFile?: ToolFile
  /** Further files that the file tools must not access, such as the server's log. */
  protectedFiles?: readonly string[]
  /** Offers only these tools. */
  tools?: readonly string[]
  excludeTools?: readonly string[]
  /** Minimum level of log messages to clients that have not set one (default `debug`). */
  logLevel?: LogLevel
  /** Receives warnings for the operator (default: a line on stderr). */
  warn?: (message: string) => void
}

const basicTools: readonly Tool[] = [
  tool({
    name: 'hello',
    title: 'Say hello',
    description: 'Say hello to someone',
    input: {
      type: 'object',
      properties: { name: { type: 'string', description: 'Name to greet' } },
      required: ['name'],
    },
    annotations: READ_ONLY,
    run: ({ name }) => `Hello, ${name}!`,
  }),
  tool({
    name: 'add',
    title: 'Add numbers',
    description: 'Add two numbers',
    input: {
      type: 'object',
      properties: {
        a: { type: 'number', description: 'The first number' },
        b: { type: 'number', description: 'The second number' },
      },
      required: ['a', 'b'],
    },
    annotations: READ_ONLY,
    run: ({ a, b }) => String(a + b),
  }),
  tool({
    name: 'echo',
    title: 'Echo',
    description: 'Return the message unchanged',
    input: {
      type: 'object',
      properties: { message: { type: 'string', description: 'The message to return' } },
      required: ['message'],
    },
    annotations: READ_ONLY,
    run: ({ message }) => message,
  }),
]

/** The server of `ccmcp serve`. Throws a TypeError for an invalid option. */
export function ccmcpServer(options: CcmcpOptions = {}): Server {
  const {
    roots,
    readOnly = false,
    toolFile: file,
    protectedFiles = [],
    logLevel = 'debug',
    warn = warnOnStderr,
  } = options
  const { unsupportedRevision, invalidArguments, unexpectedErrors } = options
  const requestLog = new RequestLog()
  const builtIn = new Set<string>()
  const registered = new RegisteredTools({ builtIn, file })
  const ownFiles = file === undefined ? [] : [file.path]
  const allTools = [
    ...basicTools,
    ...fileTools({
      roots: rootsAt(roots, warn),
      protectedFiles: [...ownFiles, ...protectedFiles],
      warn,
    }),
    ...registered.definitions,
  ]
  for (const { name } of allTools) builtIn.add(name)
  const descriptionOf = (tool: string) =>
    allTools.find(({ name }) => name === tool)?.description ?? registered.descriptionOf(tool)
  const server = createServer({
    name: 'ccmcp',
    version: VERSION,
    tools: selectTools(allTools, options),
    resources: serverResources(() => server, descriptionOf, requestLog, readOnly),
    prompts,
    logLevel,
    onInitialized: ({ log }) => log.info('Server initialized', LOGGER),
    ...(unsupportedRevision === undefined ? {} : { unsupportedRevision }),
    ...(invalidArguments === undefined ? {} : { invalidArguments }),
    ...(unexpectedErrors === undefined ? {} : { unexpectedErrors }),
  })
  server.use(requestLog.middleware)
  registered.attach(server)
  return server
}

function selectTools(
  allTools: readonly Tool[],
  { tools, excludeTools = [], readOnly = false }: CcmcpOptions,
): Tool[] {
  const known = allTools.map(({ name }) => name)
  for (const [option, names] of Object.entries({ tools: tools ?? [], excludeTools })) {
    const unknown = names.find((name) => !known.includes(name))
    if (unknown !== undefined)
      throw new TypeError(
        `${option}: unknown tool ${JSON.stringify(unknown)}; expected ${known.join(', ')}`,
      )
  }
  const omitted = readOnly ? [...excludeTools, 'write_file'] : excludeTools
  return allTools.filter(
    ({ name }) => (tools === undefined || tools.includes(name)) && !omitted.includes(name),
  )
}

/** Resources that describe the server. */
function serverResources(
  server: () => Server,
  descriptionOf: (tool: string) => string | undefined,
  requestLog: RequestLog,
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
      read: () => `requests: ${requestLog.count}\nuptime: ${requestLog.uptimeSeconds.toFixed(3)} s`,
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

/** Writes a warning for the operator as a log line. */
export function warnOnStderr(message: string): void {
  // Not process.stderr.write, which crashes the process with EPIPE if stderr has been closed.
  console.error(JSON.stringify({ time: new Date().toISOString(), level: 'warning', message }))
}

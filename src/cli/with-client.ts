import { pathToFileURL } from 'node:url'
import { basename, resolve } from 'node:path'
import {
  type CallOptions,
  ChannelClosedError,
  type Client,
  ConnectionError,
  type InputHandlers,
  RequestFailedError,
  RpcError,
  type TappedMessage,
  TimeoutError,
  connect,
  requiredElicitations,
} from '../client.js'
import { isObject } from '../jsonrpc/message.js'
import { type TaskMembers, clientTasks } from '../extensions/tasks/client-tasks.js'
import { MISSING_CLIENT_CAPABILITY } from '../protocol/errors.js'
import { statelessRevisions } from '../protocol/revisions/index.js'
import { VERSION } from '../version.js'
import type { ElicitationContext } from './elicit.js'
import { truncate } from './format.js'
import { isUrl } from './http-server.js'
import { type Arguments, CommandError, valuesOfRepeated } from './options.js'
import { printError, printJson, styled, warn } from './print.js'
import { DEFAULT_SERVER } from './servers.js'
import { checkDirectory } from './settings.js'
import type { FollowedTask } from './followed-task.js'
import { abortOnSignal } from './signals.js'
import type { ServerTarget } from './server-target.js'
import { targetOf, timeoutOf } from './target.js'

/** Maximum number of warnings about invalid lines. */
const MAX_INVALID_LINES = 5
/** Maximum characters to show of a server's error. */
const MAX_ERROR = 10_000

/** Shows a message for `--verbose`. */
export function showFrame({ direction, frame }: TappedMessage): void {
  printError(direction === 'out' ? styled('sent', '>') : styled('received', '<'), ` ${frame}\n`)
}

/** Warns about lines on a server's stdout that are not protocol messages, and about what else it does wrong. */
class InvalidOutput {
  readonly #isHttp: boolean
  #line = ''
  #count = 0

  constructor(isHttp: boolean) {
    this.#isHttp = isHttp
  }

  /** Sets the line that is being read. */
  read(line: string): void {
    this.#line = line
  }

  warn(reason: string): void {
    if (++this.#count > MAX_INVALID_LINES) return
    if (this.#isHttp) return warn(`warning: ${reason}`)
    warn(
      `the server wrote a line to stdout that is not a protocol message: ${JSON.stringify(truncate(this.#line, 200))} (${reason})`,
    )
    if (this.#count === 1)
      warn('stdout is reserved for protocol messages; servers must log to stderr')
    if (this.#count === MAX_INVALID_LINES) warn('further such lines are not shown')
  }
}

/** Sends a request, and once more if the server has refused it until the user has opened URLs. */
type Retry = <Result>(request: () => Promise<Result>) => Promise<Result>
type Use = (client: Client & TaskMembers, options: CallOptions, retry: Retry) => Promise<void>

interface ClientUse {
  /** Until Ctrl-C, with reconnecting. */
  isEndless?: boolean
  /** What is done with the task of a call. */
  task?: FollowedTask
}

/** Connects to the server, runs `use`, and always closes the connection. */
export async function withClient(
  args: Arguments,
  server: string | undefined,
  use: Use,
  { isEndless = false, task }: ClientUse = {},
): Promise<void> {
  const target = targetOf(args, server)
  const timeout = timeoutOf(args)
  const roots = valuesOfRepeated(args.values.get('root')).map(checkDirectory)
  if (args.command === undefined && server === undefined) {
    const where = process.env['CCMCP_ROOT']
      ? 'CCMCP_ROOT'
      : 'the working and the temporary directory'
    warn(
      `no server specified; using the bundled server ${DEFAULT_SERVER}, which can write files in ${where}. Pass a URL, a module (./server.js) or a command after "--" to use another`,
    )
  }
  const run = async (signal: AbortSignal) => {
    try {
      await connected(args, target, { signal, timeout, roots, reconnect: isEndless, task }, use)
    } catch (error) {
      throw commandError(error, target, args.values.has('json'))
    }
  }
  const interruption = task === undefined ? {} : { interruption: task }
  await abortOnSignal(run, { endsOnCtrlC: isEndless, ...interruption })
}

interface Connecting {
  signal: AbortSignal
  timeout: number | undefined
  roots: readonly string[]
  reconnect: boolean
  task: FollowedTask | undefined
}

async function connected(
  { values }: Arguments,
  { target, label }: ServerTarget,
  { signal, timeout, roots, reconnect, task }: Connecting,
  use: Use,
): Promise<void> {
  const revision = values.get('revision')
  const verbose = values.has('verbose')
  const isHttp = isUrl(label)
  const invalidOutput = new InvalidOutput(isHttp)
  let client: (Client & TaskMembers) | undefined
  const elicitationContext = () => {
    const name = client?.server?.name
    return {
      server: name === undefined ? label : `${name} (${label})`,
      interactive: !values.has('no-input'),
    }
  }
  const elicit: InputHandlers['elicit'] = async (params, context) => {
    const { answerElicitation } = await import('./elicit.js')
    return await answerElicitation(params, {
      ...elicitationContext(),
      waitsForUrl: client !== undefined && isStateless(client),
      signal: context.signal,
    })
  }
  client = await connect(target, {
    info: { name: 'ccmcp', version: VERSION },
    signal,
    reconnect,
    elicit,
    extensions: [clientTasks({ onStatus: (status) => task?.seen(status) })],
    ...(roots.length === 0 ? {} : { roots: () => roots.map(rootOf) }),
    ...(timeout === undefined ? {} : { timeout, probeTimeout: Math.min(timeout, 2000) }),
    ...(revision === undefined ? {} : { revision }),
    tap(tapped) {
      if (tapped.direction === 'in') invalidOutput.read(tapped.frame)
      if (verbose) showFrame(tapped)
    },
    report({ level, message }) {
      // What is not MCP at all is explained by the error of the connection.
      if (level === 'warning' && (client !== undefined || !isHttp)) invalidOutput.warn(message)
    },
  })
  task?.connected(client)
  try {
    const times = timeout === undefined ? {} : { timeout, maxTimeout: Math.max(timeout, 600_000) }
    await use(client, { signal, ...times }, retryAfterUrls(client, elicitationContext(), signal))
  } finally {
    await client.close()
  }
}

function retryAfterUrls(
  client: Client,
  context: Pick<ElicitationContext, 'server' | 'interactive'>,
  signal: AbortSignal,
): Retry {
  return async (request) => {
    try {
      return await request()
    } catch (error) {
      const elicitations = requiredElicitations(error)
      if (elicitations.length === 0) throw error
      const { completeElicitations } = await import('./required-urls.js')
      if (!(await completeElicitations(elicitations, client, { ...context, signal }))) throw error
      return await request()
    }
  }
}

/** Whether the requests describe themselves, without a handshake. */
function isStateless({ revision }: Client): boolean {
  return statelessRevisions.some(({ id }) => id === revision)
}

function rootOf(directory: string) {
  const path = resolve(directory)
  return { uri: pathToFileURL(path).href, name: basename(path) }
}

/** Codes of errors whose message says everything. */
const REPORTED: ReadonlySet<unknown> = new Set(['CANCELLED', 'NOT_SUPPORTED', 'TASK_EXPIRED'])

function commandError(error: unknown, server: ServerTarget, json: boolean): unknown {
  if (error instanceof RpcError) {
    const { code, message, data } = error
    if (json) printJson({ error: { code, message, data } })
    const detail = data === undefined || json ? '' : `\n${JSON.stringify(data, null, 2)}`
    return new CommandError(
      1,
      truncate(`The server returned error ${code}: ${message}${detail}`, MAX_ERROR) +
        adviceFor(error),
    )
  }
  if (isConnectionLost(error)) return new CommandError(3, server.explain(error))
  if (error instanceof Error && 'code' in error && REPORTED.has(error.code))
    return new CommandError(1, error.message)
  // The server sent an invalid result.
  return error instanceof TypeError ? new CommandError(1, error.message) : error
}

/** What the command line can do about an error. */
function adviceFor({ code, data }: RpcError): string {
  const needed = isObject(data) ? data['requiredCapabilities'] : undefined
  const needsRoots = code === MISSING_CLIENT_CAPABILITY && isObject(needed) && 'roots' in needed
  return needsRoots ? '\nPass --root DIR to tell the server of a directory' : ''
}

export function isConnectionLost(error: unknown): error is Error {
  return (
    error instanceof ConnectionError ||
    error instanceof ChannelClosedError ||
    error instanceof TimeoutError ||
    error instanceof RequestFailedError
  )
}

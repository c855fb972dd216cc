import type { CallOptions, Client } from '../client.js'
import { type CallToolResult, LOG_LEVELS, type LogLevel } from '../protocol/model.js'
import { standardError } from '../transports/stdio-log.js'
import { ARGS_OPTION, argumentsOf } from './arguments.js'
import { type Command, HELP } from './command.js'
import { FollowedTask } from './followed-task.js'
import { truncate } from './format.js'
import type { Arguments, Options } from './options.js'
import { printError, styled, warn } from './print.js'
import { printResult } from './print-result.js'
import { SUGGESTION_OPTIONS, didYouMean } from './suggest.js'
import { CLIENT_OPTIONS, TARGET_NOTES } from './target.js'
import { typedArguments } from './typed-arguments.js'
import { withClient } from './with-client.js'

/** Maximum characters to show of a log message. */
const MAX_LOG = 2000

const LOG_OPTION = {
  'log-level': {
    value: LOG_LEVELS,
    description: 'show log messages of the server from this level on',
  },
} as const satisfies Options

export const PAIR_NOTES = `name=value is an argument, converted to the type that the server declares: a=2, on=true, tags=x tags=y for an
array, place.city=Bonn for a member of an object. name:=JSON is taken as it is, and name@=FILE is the text of a file
(- for stdin). They are added to those of --args.`

export const call: Command = {
  usage: 'call TOOL [SERVER | -- COMMAND] [name=value …] [options]',
  description: 'Calls a tool and prints its result. An error result is written to stderr.',
  notes: `${PAIR_NOTES}

${TARGET_NOTES}`,
  options: { ...ARGS_OPTION, ...LOG_OPTION, ...CLIENT_OPTIONS, ...HELP },
  positionals: [1, 2],
  takesServerCommand: true,
  takesPairs: true,
  async run(args) {
    const [name = '', server] = args.positionals
    const { args: object, given } = await argumentsOf(args)
    const task = new FollowedTask(args, server)
    const use: Parameters<typeof withClient>[2] = async (client, options, retry) => {
      const input =
        given.length === 0
          ? object
          : typedArguments(object, given, await inputSchemaOf(client, name, options))
      await showLogMessages(client, args, options)
      const result = await retry(() => callTool(client, name, input, options, task))
      printResult(name, result, args)
    }
    await withClient(args, server, use, { task })
  },
}

/** The input schema of a tool; one that accepts everything if the server does not list the tool. */
async function inputSchemaOf(client: Client, name: string, options: CallOptions): Promise<unknown> {
  for await (const tool of client.tools(options))
    if (tool.name === name) return tool.inputSchema ?? true
  return true
}

async function showLogMessages(
  client: Client,
  { values }: Arguments,
  options: CallOptions,
): Promise<void> {
  const level = values.get('log-level') as LogLevel | undefined // checked against the option's values
  if (level !== undefined || standardError.isTTY)
    client.on('notifications/message', printLogMessage)
  if (level === undefined) return
  await client.setLogLevel(level, options).catch((error: unknown) => {
    if (!(error instanceof Error && 'code' in error && error.code === 'NOT_SUPPORTED')) throw error
    warn('the server has no log messages; --log-level has no effect')
  })
}

async function callTool(
  client: Client,
  name: string,
  input: Record<string, unknown>,
  options: CallOptions,
  task: FollowedTask,
): Promise<CallToolResult> {
  const status = task.show(name)
  try {
    return await client
      // Progress also extends the timeout, so it is requested without a terminal as well.
      .callTool(name, input, { ...options, onProgress: (progress) => status?.update(progress) })
      .catch(didYouMean(name, client.tools(SUGGESTION_OPTIONS), (tool) => tool.name))
  } finally {
    status?.end()
  }
}

function printLogMessage(params: { level: LogLevel; logger?: string; data: unknown }): void {
  const { level, logger, data } = params
  const text = typeof data === 'string' ? data : (JSON.stringify(data) ?? '')
  const source = typeof logger === 'string' ? `${level}, ${logger}` : String(level)
  printError(styled('detail', `[${source}]`), ` ${truncate(text, MAX_LOG).trimEnd()}\n`)
}

import type { CallOptions, Client } from '../client.js'
import { isObject } from '../jsonrpc/message.js'
import { ARGS_OPTION, type GivenArgument, argumentsOf } from './arguments.js'
import { type Command, HELP } from './command.js'
import { UsageError, suggestion } from './options.js'
import { print, printJson } from './print.js'
import { contentText } from './format.js'
import { SUGGESTION_OPTIONS, didYouMean } from './suggest.js'
import { CLIENT_OPTIONS, TARGET_NOTES } from './target.js'
import { withClient } from './with-client.js'

export const prompt: Command = {
  usage: 'prompt NAME [SERVER | -- COMMAND] [name=value …] [options]',
  description: 'Gets a prompt and prints its messages.',
  notes: `name=value is an argument, and name@=FILE the text of a file (- for stdin). They are added to those of --args.

${TARGET_NOTES}`,
  options: { ...ARGS_OPTION, ...CLIENT_OPTIONS, ...HELP },
  positionals: [1, 2],
  takesServerCommand: true,
  takesPairs: true,
  async run(args) {
    const [name = '', server] = args.positionals
    const { args: object, given } = await argumentsOf(args)
    const values = { ...checkStrings(object), ...stringsOf(given) }
    await withClient(args, server, async (client, options, retry) => {
      if (given.length > 0) await checkArguments(client, name, values, options)
      const result = await retry(() => client.getPrompt(name, values, options)).catch(
        didYouMean(name, client.prompts(SUGGESTION_OPTIONS), (each) => each.name),
      )
      if (args.values.has('json')) return printJson(result)
      const messages = result.messages.map((message) =>
        isObject(message)
          ? `${message.role}: ${contentText([message.content])}\n`
          : `${JSON.stringify(message)}\n`,
      )
      print(messages.join('\n'))
    })
  },
}

function checkStrings(args: Record<string, unknown>): Record<string, string> {
  for (const [name, value] of Object.entries(args)) {
    if (typeof value !== 'string')
      throw new UsageError(`--args: prompt arguments must be strings; write "${name}":"…"`)
  }
  return args as Record<string, string> // checked by the loop
}

function stringsOf(given: readonly GivenArgument[]): Record<string, string> {
  const entries = given.map(({ name, given: one }) => {
    const value = 'text' in one ? one.text : one.value
    if (typeof value !== 'string')
      throw new UsageError(`${name}: prompt arguments must be strings; write ${name}=…`)
    return [name, value] as const
  })
  const names = entries.map(([name]) => name)
  const repeated = names.find((name, index) => names.indexOf(name) !== index)
  if (repeated !== undefined)
    throw new UsageError(`${repeated} was given several times; a prompt argument has one value`)
  return Object.fromEntries(entries)
}

/** Throws if the prompt does not have one of the arguments, or requires another. A prompt that is not listed is left to the server. */
async function checkArguments(
  client: Client,
  name: string,
  values: Readonly<Record<string, string>>,
  options: CallOptions,
): Promise<void> {
  for await (const prompt of client.prompts(options)) {
    if (prompt.name !== name) continue
    const known = (Array.isArray(prompt.arguments) ? prompt.arguments : []).filter(isObject)
    const names = known.map((each) => String(each['name']))
    const unknown = Object.keys(values).find((each) => !names.includes(each))
    if (unknown !== undefined) {
      const expected = names.length === 0 ? 'it takes no arguments' : `expected ${names.join(', ')}`
      throw new UsageError(
        `Unknown argument ${JSON.stringify(unknown)}${suggestion(unknown, names) || `; ${expected}`}`,
      )
    }
    const missing = known
      .filter((each) => each['required'] === true && !Object.hasOwn(values, String(each['name'])))
      .map((each) => String(each['name']))
    if (missing.length === 0) return
    throw new UsageError(
      `Missing argument${missing.length === 1 ? '' : 's'}: ${missing.join(', ')}`,
    )
  }
}

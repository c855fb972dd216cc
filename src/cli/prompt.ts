import { isObject } from '../jsonrpc/message.js'
import { type Command, HELP } from './command.js'
import { UsageError } from './options.js'
import { print, printJson } from './print.js'
import { contentText } from './format.js'
import { SUGGESTION_OPTIONS, didYouMean } from './suggest.js'
import { ARGS_OPTION, CLIENT_OPTIONS, TARGET_NOTES, argsOf, withClient } from './target.js'

export const prompt: Command = {
  usage: 'prompt NAME [SERVER | -- COMMAND] [options]',
  description: 'Gets a prompt and prints its messages.',
  notes: TARGET_NOTES,
  options: { ...ARGS_OPTION, ...CLIENT_OPTIONS, ...HELP },
  positionals: [1, 2],
  takesServerCommand: true,
  async run(args) {
    const [name = '', word] = args.positionals
    const values = checkStrings(await argsOf(args))
    await withClient(args, word, async (client, options) => {
      const result = await client
        .getPrompt(name, values, options)
        .catch(didYouMean(name, client.prompts(SUGGESTION_OPTIONS), (each) => each.name))
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

import { isObject } from '../jsonrpc/message.js'
import { type Command, HELP } from './command.js'
import { UsageError } from './options.js'
import { print, printJson } from './print.js'
import { contentText } from './show.js'
import { QUICK, didYouMean } from './suggest.js'
import { ARGS_OPTION, CLIENT_OPTIONS, TARGET_NOTES, argsOf, withClient } from './target.js'

export const prompt: Command = {
  usage: 'prompt NAME [SERVER | -- COMMAND] [options]',
  about: 'Gets a prompt and prints its messages.',
  notes: TARGET_NOTES,
  options: { ...ARGS_OPTION, ...CLIENT_OPTIONS, ...HELP },
  words: [1, 2],
  takesCommand: true,
  async run(args) {
    const [name = '', word] = args.words
    const given = textsOf(await argsOf(args))
    await withClient(args, word, async (client, options) => {
      const result = await client
        .getPrompt(name, given, options)
        .catch(didYouMean(name, client.prompts(QUICK), (each) => each.name))
      if (args.given.has('json')) return printJson(result)
      const messages = result.messages.map((message) =>
        isObject(message)
          ? `${message.role}: ${contentText([message.content])}\n`
          : `${JSON.stringify(message)}\n`,
      )
      print(messages.join('\n'))
    })
  },
}

function textsOf(args: Record<string, unknown>): Record<string, string> {
  for (const [name, value] of Object.entries(args)) {
    if (typeof value !== 'string')
      throw new UsageError(`Arguments of prompts are texts: write "${name}":"…" in --args`)
  }
  return args as Record<string, string> // as the loop has seen
}

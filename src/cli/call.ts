import { type Command, HELP } from './command.js'
import { CommandError } from './options.js'
import { print, printJson } from './print.js'
import { contentText } from './format.js'
import { SUGGESTION_OPTIONS, didYouMean } from './suggest.js'
import { ARGS_OPTION, CLIENT_OPTIONS, TARGET_NOTES, argsOf, withClient } from './target.js'

export const call: Command = {
  usage: 'call TOOL [SERVER | -- COMMAND] [options]',
  description: 'Calls a tool and prints its result. An error result is written to stderr.',
  notes: TARGET_NOTES,
  options: { ...ARGS_OPTION, ...CLIENT_OPTIONS, ...HELP },
  positionals: [1, 2],
  takesServerCommand: true,
  async run(args) {
    const [name = '', word] = args.positionals
    const input = await argsOf(args)
    const json = args.values.has('json')
    await withClient(args, word, async (client, options) => {
      const result = await client
        .callTool(name, input, options)
        .catch(didYouMean(name, client.tools(SUGGESTION_OPTIONS), (tool) => tool.name))
      const text =
        result.content.length > 0
          ? contentText(result.content)
          : JSON.stringify(result.structuredContent ?? null, null, 2)
      if (json) printJson(result)
      else if (result.isError !== true) print(text.endsWith('\n') ? text : `${text}\n`)
      if (result.isError === true)
        throw new CommandError(1, json ? `${name} failed` : `${name} failed: ${text}`)
    })
  },
}

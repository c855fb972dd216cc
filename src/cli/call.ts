import { type Command, HELP } from './command.js'
import { Failure } from './options.js'
import { print, printJson } from './print.js'
import { contentText } from './show.js'
import { QUICK, didYouMean } from './suggest.js'
import { ARGS_OPTION, CLIENT_OPTIONS, TARGET_NOTES, argsOf, withClient } from './target.js'

export const call: Command = {
  usage: 'call TOOL [SERVER | -- COMMAND] [options]',
  about:
    'Calls a tool and prints its result. What the tool says of its own failure goes to stderr.',
  notes: TARGET_NOTES,
  options: { ...ARGS_OPTION, ...CLIENT_OPTIONS, ...HELP },
  words: [1, 2],
  takesCommand: true,
  async run(args) {
    const [name = '', word] = args.words
    const input = await argsOf(args)
    const json = args.given.has('json')
    await withClient(args, word, async (client, options) => {
      const result = await client
        .callTool(name, input, options)
        .catch(didYouMean(name, client.tools(QUICK), (tool) => tool.name))
      const text =
        result.content.length > 0
          ? contentText(result.content)
          : JSON.stringify(result.structuredContent ?? null, null, 2)
      if (json) printJson(result)
      else if (result.isError !== true) print(text.endsWith('\n') ? text : `${text}\n`)
      if (result.isError === true)
        throw new Failure(1, json ? `${name} has failed` : `${name} has failed: ${text}`)
    })
  },
}

import { type Client, RpcError } from '../client.js'
import { type Command, HELP } from './command.js'
import { Failure, suggestion } from './options.js'
import { print } from './print.js'
import { contentText, shown } from './show.js'
import { ARGS_OPTION, CLIENT_OPTIONS, TARGET_NOTES, argsOf, withClient } from './target.js'

export const call: Command = {
  usage: 'call TOOL [SERVER | -- COMMAND] [options]',
  about: 'Calls a tool and prints its result. What the tool says of its own failure goes to stderr.',
  notes: TARGET_NOTES,
  options: { ...ARGS_OPTION, ...CLIENT_OPTIONS, ...HELP },
  words: [1, 2],
  takesCommand: true,
  async run(args) {
    const [name = '', word] = args.words
    const input = await argsOf(args)
    const json = args.given.has('json')
    await withClient(args, word, async (client, options) => {
      const result = await client.callTool(name, input, options).catch((error: unknown) => hint(client, name, error))
      const text = result.content.length > 0 ? contentText(result.content) : JSON.stringify(result.structuredContent ?? null, null, 2)
      if (json) print(shown(`${JSON.stringify(result, null, 2)}\n`, process.stdout))
      else if (result.isError !== true) print(shown(text.endsWith('\n') ? text : `${text}\n`, process.stdout))
      if (result.isError === true) throw new Failure(1, json ? `${name} has failed` : shown(`${name} has failed: ${text}`, process.stderr))
    })
  },
}

/** The error, with the name that was probably meant. */
async function hint(client: Client, name: string, error: unknown): Promise<never> {
  if (!(error instanceof RpcError)) throw error
  const names: string[] = []
  try {
    for await (const tool of client.tools({ timeout: 5000 })) names.push(tool.name)
  } catch {
    throw error
  }
  throw names.includes(name) ? error : new RpcError(error.code, error.message + suggestion(name, names), error.data)
}

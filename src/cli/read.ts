import type { ResourceContents } from '../protocol/model.js'
import { type Command, HELP } from './command.js'
import { print } from './print.js'
import { shown } from './show.js'
import { CLIENT_OPTIONS, TARGET_NOTES, withClient } from './target.js'

export const read: Command = {
  usage: 'read URI [SERVER | -- COMMAND] [options]',
  about: 'Reads a resource and prints its content: text and bytes as they are.',
  notes: TARGET_NOTES,
  options: { ...CLIENT_OPTIONS, ...HELP },
  words: [1, 2],
  takesCommand: true,
  run: (args) =>
    withClient(args, args.words[1], async (client, options) => {
      const result = await client.readResource(args.words[0] ?? '', options)
      if (args.given.has('json')) print(shown(`${JSON.stringify(result, null, 2)}\n`, process.stdout))
      else for (const contents of result.contents) printContents(contents, result.contents.length > 1)
    }),
}

function printContents({ uri, mimeType = 'unknown type', text, blob }: ResourceContents, titled: boolean): void {
  if (titled) print(shown(`${uri} (${mimeType})\n`, process.stdout))
  if (text !== undefined) print(shown(text.endsWith('\n') || !(titled || process.stdout.isTTY) ? text : `${text}\n`, process.stdout))
  else if (process.stdout.isTTY)
    print(shown(`[${Buffer.byteLength(blob ?? '', 'base64')} bytes of ${mimeType}; write them to a file with >]\n`, process.stdout))
  else print(Buffer.from(blob ?? '', 'base64'))
}

import type { ResourceContents } from '../protocol/model.js'
import { type Command, HELP } from './command.js'
import { print, printJson, printRaw } from './print.js'
import { QUICK, didYouMean } from './suggest.js'
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
      const [uri = ''] = args.words
      const result = await client
        .readResource(uri, options)
        .catch(didYouMean(uri, client.resources(QUICK), (resource) => resource.uri))
      if (args.given.has('json')) printJson(result)
      else
        for (const contents of result.contents) printContents(contents, result.contents.length > 1)
    }),
}

function printContents(
  { uri, mimeType = 'unknown type', text, blob }: ResourceContents,
  titled: boolean,
): void {
  if (titled) print(`${uri} (${mimeType})\n`)
  if (text !== undefined)
    print(text.endsWith('\n') || !(titled || process.stdout.isTTY) ? text : `${text}\n`)
  else if (process.stdout.isTTY)
    print(
      `[${Buffer.byteLength(blob ?? '', 'base64')} bytes of ${mimeType}; write them to a file with >]\n`,
    )
  else printRaw(Buffer.from(blob ?? '', 'base64'))
}

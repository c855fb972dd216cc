import type { ResourceContents } from '../protocol/model.js'
import { type Command, HELP } from './command.js'
import { print, printJson, printRaw } from './print.js'
import { SUGGESTION_OPTIONS, didYouMean } from './suggest.js'
import { CLIENT_OPTIONS, TARGET_NOTES } from './target.js'
import { withClient } from './with-client.js'

export const read: Command = {
  usage: 'read URI [SERVER | -- COMMAND] [options]',
  description: 'Reads a resource and prints its contents unchanged.',
  notes: TARGET_NOTES,
  options: { ...CLIENT_OPTIONS, ...HELP },
  positionals: [1, 2],
  takesServerCommand: true,
  run: (args) =>
    withClient(args, args.positionals[1], async (client, options, retry) => {
      const [uri = ''] = args.positionals
      const result = await retry(() => client.readResource(uri, options)).catch(
        didYouMean(uri, client.resources(SUGGESTION_OPTIONS), (resource) => resource.uri),
      )
      if (args.values.has('json')) printJson(result)
      else
        for (const contents of result.contents) printContents(contents, result.contents.length > 1)
    }),
}

export function printContents(
  { uri, mimeType = 'unknown type', text, blob }: ResourceContents,
  withTitle: boolean,
): void {
  if (withTitle) print(`${uri} (${mimeType})\n`)
  if (text !== undefined)
    print(text.endsWith('\n') || !(withTitle || process.stdout.isTTY) ? text : `${text}\n`)
  else if (process.stdout.isTTY)
    print(
      `[${Buffer.byteLength(blob ?? '', 'base64')} bytes of ${mimeType}; redirect stdout to a file to save them]\n`,
    )
  else printRaw(Buffer.from(blob ?? '', 'base64'))
}

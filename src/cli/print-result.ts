import type { CallToolResult } from '../protocol/model.js'
import { contentText } from './format.js'
import { type Arguments, CommandError } from './options.js'
import { isPair } from './pairs.js'
import { print, printJson, warn } from './print.js'

/** Prints the result of a tool; an error result is thrown. */
export function printResult(
  name: string,
  result: CallToolResult,
  { values, command }: Arguments,
): void {
  const text =
    result.content.length > 0
      ? contentText(result.content)
      : JSON.stringify(result.structuredContent ?? null, null, 2)
  const json = values.has('json')
  if (json) printJson(result)
  else if (result.isError !== true) print(text.endsWith('\n') ? text : `${text}\n`)
  if (result.isError !== true) return
  if (command?.some(isPair) === true)
    warn('what follows "--" belongs to the command of the server; write name=value before "--"')
  throw new CommandError(1, json ? `${name} failed` : `${name} failed: ${text}`)
}

import { readFileSync } from 'node:fs'
import { isObject } from '../jsonrpc/message.js'
import { type Arguments, CommandError, type Options, UsageError } from './options.js'
import { type Pair, parsePair } from './pairs.js'

export const ARGS_OPTION = {
  args: {
    value: 'JSON',
    description: 'arguments as a JSON object; @FILE reads them from a file, - from stdin',
  },
} as const satisfies Options

/** One `name=value`, with the file of `name@=FILE` read and the JSON of `name:=JSON` parsed. */
export interface GivenArgument {
  name: string
  /** Text that is to be typed by the schema, or a value. */
  given: { text: string } | { value: unknown }
}

/** The value of `--args`, and the `name=value` arguments. */
export async function argumentsOf({ values, pairs }: Arguments): Promise<{
  args: Record<string, unknown>
  given: GivenArgument[]
}> {
  const parsed = pairs.map(parsePair)
  const fromStdin = parsed.filter(({ operator, value }) => operator === '@=' && value === '-')
  if (fromStdin.length + (values.get('args') === '-' ? 1 : 0) > 1)
    throw new UsageError('stdin can be read only once; use a file for the other argument')
  const given: GivenArgument[] = []
  for (const pair of parsed) given.push({ name: pair.name, given: await givenOf(pair) })
  return { args: await argsOf(values.get('args')), given }
}

async function givenOf({ name, operator, value }: Pair): Promise<GivenArgument['given']> {
  if (operator === '=') return { text: value }
  if (operator === '@=')
    return { text: await contentOf(`${name}@=${value}`, value === '-' ? undefined : value) }
  try {
    return { value: JSON.parse(value) as unknown }
  } catch (error) {
    throw new UsageError(
      `${name}:=… is not valid JSON (${messageOf(error)}); for text write ${name}=…`,
    )
  }
}

async function argsOf(text: string | undefined): Promise<Record<string, unknown>> {
  if (text === undefined) return {}
  let value: unknown
  try {
    value = JSON.parse(await textOf(text))
  } catch (error) {
    if (error instanceof CommandError) throw error
    throw new UsageError(
      `--args is not valid JSON (${messageOf(error)}); expected an object such as '{"name":"value"}'`,
    )
  }
  if (!isObject(value))
    throw new UsageError(`--args must be a JSON object, such as '{"name":"value"}'`)
  return value
}

async function textOf(text: string): Promise<string> {
  if (text === '-') return await contentOf('--args -', undefined)
  return text.startsWith('@') ? await contentOf(`--args ${text}`, text.slice(1)) : text
}

/** The text of a file, or of stdin. */
async function contentOf(argument: string, file: string | undefined): Promise<string> {
  try {
    if (file !== undefined) return readFileSync(file, 'utf8')
    const chunks: Buffer[] = []
    for await (const chunk of process.stdin) chunks.push(chunk as Buffer) // no encoding was set
    return Buffer.concat(chunks).toString()
  } catch (error) {
    throw new UsageError(`${argument}: cannot read ${file ?? 'stdin'}: ${messageOf(error)}`)
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

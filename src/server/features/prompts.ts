import { INTERNAL_ERROR, INVALID_PARAMS, RpcError } from '../../jsonrpc/errors.js'
import { andThen } from '../../jsonrpc/hook.js'
import { type Params, isObject } from '../../jsonrpc/message.js'
import { truncate } from '../../jsonrpc/truncate.js'
import type { GetPromptResult, PromptListing, PromptMessage } from '../../protocol/model.js'
import { MAX_ISSUES } from '../../schema/standard.js'
import type { Context } from '../context.js'
import type { Prompt } from '../define.js'
import { isToolError } from '../tool-error.js'
import { visibleTo, checkScopes, isVisibleTo, convertResult } from './definition.js'
import { blocksOf, wholeResult } from './result.js'

export function allPrompts({
  server,
  connection,
}: Context): PromptListing[] | Promise<PromptListing[]> {
  return andThen(visibleTo(server.prompts.values(), connection.caller), (seen) =>
    seen.map(({ listing }) => listing),
  )
}

export async function getPrompt(
  context: Context,
  { name, arguments: given = {} }: Params,
): Promise<GetPromptResult> {
  if (typeof name !== 'string')
    throw new RpcError(INVALID_PARAMS, 'Invalid params: "name" must be the name of a prompt')
  const served = context.server.prompts.get(name)
  const seen = served !== undefined && isVisibleTo(served.definition, context.connection.caller)
  if (served === undefined || !(seen instanceof Promise ? await seen : seen))
    throw new RpcError(INVALID_PARAMS, `Unknown prompt: ${truncate(name)}`)
  checkScopes(served.definition, context)
  if (!isObject(given))
    throw new RpcError(INVALID_PARAMS, 'Invalid params: "arguments" must be an object')
  const { definition } = served
  const built = await build(definition, checkArguments(definition, given), context)
  const result = convertResult(`Prompt ${name}`, context, () => resultOf(built))
  return definition.description === undefined
    ? result
    : { description: definition.description, ...result }
}

async function build(
  { build: made }: Prompt,
  given: Record<string, string>,
  { call }: Context,
): Promise<unknown> {
  try {
    return await made(given, call)
  } catch (error) {
    throw isToolError(error) ? new RpcError(INTERNAL_ERROR, error.message) : error
  }
}

function checkArguments(
  { name, arguments: declared = {} }: Prompt,
  given: Params,
): Record<string, string> {
  const problems: string[] = []
  const values: [string, string][] = []
  for (const [argument, { required, values: allowed }] of Object.entries(declared)) {
    const value = Object.hasOwn(given, argument) ? given[argument] : undefined
    if (value === undefined) {
      if (required !== false) problems.push(`${argument} is required`)
    } else if (typeof value !== 'string') problems.push(`${argument} must be a string`)
    else if (allowed !== undefined && !allowed.includes(value))
      problems.push(`${argument} must be one of ${allowed.join(', ')}`)
    else values.push([argument, value])
  }
  for (const argument of Object.keys(given)) {
    if (problems.length >= MAX_ISSUES) break
    if (!Object.hasOwn(declared, argument))
      problems.push(`${truncate(argument)} is an unknown argument`)
  }
  if (problems.length > 0)
    throw new RpcError(
      INVALID_PARAMS,
      `Invalid arguments for prompt ${name}: ${problems.slice(0, MAX_ISSUES).join('; ')}`,
    )
  // Own properties, also of an argument that is named __proto__.
  return Object.fromEntries(values)
}

/** What `build` returned, as a result: text is what the user says; a `GetPromptResult` is taken as it is. */
function resultOf(built: unknown): GetPromptResult {
  const whole = wholeResult(built, 'GetPromptResult', ['messages', 'description', '_meta'])
  if (whole === undefined) return { messages: messagesOf(built) }
  const { messages, description, _meta } = whole
  if (description !== undefined && typeof description !== 'string')
    throw new TypeError('its result has a "description" that is not a string')
  return {
    messages: messagesOf(messages, true),
    ...(description === undefined ? {} : { description }),
    ...(_meta === undefined ? {} : { _meta }),
  }
}

/** Without a role, text or a content block is what the user says. */
function messagesOf(built: unknown, needRole = false): PromptMessage[] {
  return Array.from(Array.isArray(built) ? built : [built], (item: unknown, index) => {
    if (isMessage(item)) return { role: item.role, content: blockOf(item.content) }
    if (needRole || Array.isArray(item) || (isObject(item) && 'role' in item))
      throw new TypeError(
        `messages[${index}] must have a "role", "user" or "assistant", and a "content"`,
      )
    return { role: 'user', content: blockOf(item) }
  })
}

function isMessage(value: unknown): value is { role: 'user' | 'assistant'; content: unknown } {
  return (
    isObject(value) &&
    (value['role'] === 'user' || value['role'] === 'assistant') &&
    'content' in value
  )
}

function blockOf(content: unknown): PromptMessage['content'] {
  const [block, ...more] = blocksOf(content as string) // it throws if it is neither text nor a block
  if (block === undefined || more.length > 0)
    throw new TypeError('a prompt message must have exactly one content block')
  return block
}

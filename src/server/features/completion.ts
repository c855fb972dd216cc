import { INVALID_PARAMS, RpcError } from '../../jsonrpc/errors.js'
import { type Params, isObject } from '../../jsonrpc/message.js'
import { truncate, truncateJson } from '../../jsonrpc/truncate.js'
import type { CompleteResult } from '../../protocol/model.js'
import type { Context } from '../context.js'
import type { Complete } from '../define.js'
import { checkScopes, convertResult, isStrings, isVisibleTo } from './definition.js'

/** Maximum values of a completion. */
const MAX_VALUES = 100

export async function complete(
  context: Context,
  { ref, argument, context: others }: Params,
): Promise<CompleteResult> {
  if (
    !isObject(argument) ||
    typeof argument['name'] !== 'string' ||
    typeof argument['value'] !== 'string'
  ) {
    throw new RpcError(
      INVALID_PARAMS,
      'Invalid params: "argument" must have a "name" and a "value"',
    )
  }
  const { name, value } = argument as { name: string; value: string }
  const completer = await completerOf(context, ref, name)
  const given = isObject(others) && isObject(others['arguments']) ? others['arguments'] : {}
  const found: unknown =
    typeof completer === 'function'
      ? await completer(value, strings(given))
      : completer.filter((each) => each.startsWith(value))
  const what = `"complete" of "${name}" in ${JSON.stringify(Object(ref).name ?? Object(ref).uri)}`
  return convertResult(what, context, () => {
    if (!isStrings(found)) throw new TypeError('it must be an array of strings')
    const values = found.slice(0, MAX_VALUES)
    return { completion: { values, total: found.length, hasMore: found.length > values.length } }
  })
}

async function completerOf(
  context: Context,
  ref: unknown,
  argument: string,
): Promise<Complete | readonly string[]> {
  const { server, connection } = context
  if (isObject(ref) && ref['type'] === 'ref/prompt') {
    const { name } = ref
    const served = typeof name === 'string' ? server.prompts.get(name) : undefined
    if (served === undefined || !(await isVisibleTo(served.definition, connection.caller)))
      throw new RpcError(
        INVALID_PARAMS,
        `Unknown prompt: ${typeof name === 'string' ? truncate(name) : truncateJson(name)}`,
      )
    checkScopes(served.definition, context)
    const declared = served.definition.arguments ?? {}
    const declaration = Object.hasOwn(declared, argument) ? declared[argument] : undefined
    if (declaration === undefined)
      throw new RpcError(
        INVALID_PARAMS,
        `Unknown argument of prompt ${served.listing.name}: ${truncate(argument)}`,
      )
    return declaration.complete ?? declaration.values ?? []
  }
  if (isObject(ref) && ref['type'] === 'ref/resource') {
    const { uri } = ref
    const served = typeof uri === 'string' ? server.resources.get(uri) : undefined
    if (
      served?.template === undefined ||
      !(await isVisibleTo(served.definition, connection.caller))
    )
      throw new RpcError(
        INVALID_PARAMS,
        `Unknown resource template: ${typeof uri === 'string' ? truncate(uri) : truncateJson(uri)}`,
      )
    checkScopes(served.definition, context)
    if (!served.template.variables.includes(argument))
      throw new RpcError(
        INVALID_PARAMS,
        `Unknown variable of ${served.template.source}: ${truncate(argument)}`,
      )
    const completers = served.definition.complete ?? {}
    return (Object.hasOwn(completers, argument) ? completers[argument] : undefined) ?? []
  }
  throw new RpcError(
    INVALID_PARAMS,
    'Invalid params: "ref" must be of type "ref/prompt" or "ref/resource"',
  )
}

function strings(values: Params): Record<string, string> {
  const found: [string, string][] = []
  // Not `entries`: there may be 200,000.
  for (const name of Object.keys(values)) {
    const value = values[name]
    if (typeof value === 'string') found.push([name, value])
  }
  return Object.fromEntries(found)
}

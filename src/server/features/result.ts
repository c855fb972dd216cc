import { isObject, isThenable } from '../../jsonrpc/message.js'
import type { CallToolResult, ContentBlock, Meta } from '../../protocol/model.js'
import { type Validator, type Outcome, describeIssues } from '../../schema/standard.js'
import { type ToolResult, isBranded } from '../define.js'
import { isListOf, withoutUndefined } from './definition.js'

/**
 * What a handler returned, as a result. With an `output` schema the return
 * value is the structured value, whatever it looks like; without one, strings
 * and content blocks are content, an object that looks like a `CallToolResult`
 * is one, and anything else becomes JSON text.
 * Throws if the value does not fit the schema or cannot be written as JSON.
 */
export function resultOf(
  returned: unknown,
  output: Validator | undefined,
): CallToolResult | Promise<CallToolResult> {
  if (typeof returned === 'string' && output === undefined)
    return { content: [{ type: 'text', text: returned }], isError: false }
  const parts: ToolResult = isBranded(returned)
    ? returned
    : output === undefined
      ? partsOf(returned)
      : { value: returned }
  // The output schema does not apply to failures.
  if (output === undefined || parts.isError === true) return assemble(parts, asJson(parts.value))
  const outcome = output.check(asJson(parts.value))
  const hint = otherMember(returned) === '' ? `. ${VALUE_HINT}` : ''
  return isThenable(outcome)
    ? Promise.resolve(outcome).then((checked) => assemble(parts, fitting(checked, hint)))
    : assemble(parts, fitting(outcome, hint))
}

/** The hint if a tool with an `output` schema returns what looks like a whole result. */
export const VALUE_HINT =
  'With an "output" schema, return the value itself, or result({ value, content }) to send content beside it; for a failure, throw a ToolError or return result({ isError: true, content })'

const MEMBERS = new Set(['content', 'structuredContent', 'isError', '_meta'])

/** The first member of an object that a result does not have. Reads no other member: a getter may throw. */
function memberBeside(known: ReadonlySet<string>, value: Record<string, unknown>) {
  return Object.keys(value).find(
    (name) => !(name === 'resultType' ? value[name] === 'complete' : known.has(name)),
  )
}

/**
 * Whether a value looks like a `CallToolResult`, as handlers return it elsewhere: '' if it has nothing but members of
 * one; the name of another member if its content is that of one.
 */
export function otherMember(value: unknown): string | undefined {
  if (!isObject(value) || isBranded(value) || 'toJSON' in value) return undefined
  const other = memberBeside(MEMBERS, value)
  if (other === undefined)
    return Object.keys(value).some((name) => MEMBERS.has(name)) ? '' : undefined
  if (!Object.hasOwn(value, 'content')) return undefined
  const { content, isError } = value
  const whole = isListOf(content, isBlock) && (content.length > 0 || isError === true)
  return whole ? other : undefined
}

/** What `read` or `build` returned, if it is a whole result: an object with the first of its members. Throws if it is malformed. */
export function wholeResult(
  value: unknown,
  type: string,
  members: readonly [list: string, ...others: string[]],
): (Record<string, unknown> & { _meta?: Meta | undefined }) | undefined {
  if (!isObject(value)) return undefined
  refuseInputRequired(value)
  const [list] = members
  if (!(list in value)) return undefined
  const other = memberBeside(new Set(members), withoutUndefined(value))
  if (other !== undefined)
    throw new TypeError(
      `its result has "${list}" and "${other}", which is not a member of a ${type}`,
    )
  if (!Array.isArray(value[list]))
    throw new TypeError(`its result has "${list}" that are not an array`)
  const { _meta } = value
  if (_meta !== undefined && !isObject(_meta))
    throw new TypeError('its result has a "_meta" that is not an object')
  return value
}

function refuseInputRequired(value: Record<string, unknown>): void {
  const own = Object.hasOwn(value, 'resultType') && !('toJSON' in value)
  if (own && value['resultType'] === 'input_required')
    throw new TypeError('its result is "input_required"; use call.ask to ask for input')
}

function partsOf(returned: unknown): ToolResult {
  const other = otherMember(returned)
  if (other === undefined || !isObject(returned)) {
    if (isObject(returned)) refuseInputRequired(returned)
    return { content: contentOf(returned) }
  }
  const { content, structuredContent, isError, _meta } = returned
  const wrong = (problem: string) =>
    new TypeError(
      `its result looks like a CallToolResult, but ${problem}; to send such a value as JSON text, return JSON.stringify(value)`,
    )
  if (other !== '' && isError === true) throw wrong(`"${other}" is not a member of one`)
  if (other !== '') return { content: contentOf(returned) }
  if (content === undefined && structuredContent === undefined) throw wrong('it has no "content"')
  if (content !== undefined && !Array.isArray(content))
    throw wrong('its "content" is not an array of content blocks')
  if (isError !== undefined && typeof isError !== 'boolean')
    throw wrong('its "isError" is not true or false')
  if (_meta !== undefined && !isObject(_meta)) throw wrong('its "_meta" is not an object')
  const parts: ToolResult = { value: structuredContent, isError: isError === true }
  if (content !== undefined) parts.content = content as ContentBlock[] // each is looked at by `blocksOf`
  if (_meta !== undefined) parts.meta = _meta
  return parts
}

/** The value after a round trip through JSON: a date is a string, and what is not JSON is missing. */
function asJson(value: unknown): unknown {
  if (isPlainJson(value)) return value
  const text = value === undefined ? undefined : toJson(value)
  return text === undefined ? undefined : JSON.parse(text)
}

function isPlainJson(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value !== 'object' || value === null)
    return !['bigint', 'function', 'symbol'].includes(typeof value)
  if (Array.isArray(value)) return isListOf(value, isPlainJson)
  const prototype: unknown = Object.getPrototypeOf(value)
  return (
    (prototype === Object.prototype || prototype === null) &&
    !('toJSON' in value) &&
    Object.values(value).every(isPlainJson)
  )
}

function fitting(outcome: Outcome, hint: string): unknown {
  if (outcome.issues === undefined) return outcome.value
  throw new TypeError(
    `its result does not match its output schema: ${describeIssues(outcome.issues)}${hint}`,
  )
}

function assemble({ content, meta, isError }: ToolResult, value: unknown): CallToolResult {
  if (meta !== undefined && !isObject(meta))
    throw new TypeError('its result has a `meta` that is not an object')
  const blocks = content === undefined ? [] : blocksOf(content)
  // A client that does not read structured content still gets the value, as text.
  if (value !== undefined && content === undefined)
    blocks.push({ type: 'text', text: toJson(value) })
  const result: CallToolResult = { content: blocks, isError: isError === true }
  if (value !== undefined) result.structuredContent = value
  if (meta !== undefined) result._meta = meta
  return result
}

function contentOf(value: unknown): ContentBlock[] {
  if (value === undefined) return []
  if (
    isBlock(value) ||
    (isListOf<string | ContentBlock>(value, (item) => typeof item === 'string' || isBlock(item)) &&
      value.length > 0)
  )
    return blocksOf(value)
  return [{ type: 'text', text: toJson(value) }]
}

export function blocksOf(
  content: string | ContentBlock | readonly (string | ContentBlock)[],
): ContentBlock[] {
  const items = typeof content === 'string' || !Array.isArray(content) ? [content] : content
  // `map` would not see holes, which are sent as null.
  return Array.from(items, (item: string | ContentBlock, index) => {
    if (typeof item === 'string') return { type: 'text', text: item }
    if (!isBlock(item))
      throw new TypeError(
        `content[${index}] is neither a string nor a content block: ${faultOf(item)}`,
      )
    const fault = faultIn(item)
    if (fault !== undefined) throw new TypeError(`content[${index}]: ${fault}`)
    return item
  })
}

/** What clients do not accept in a block that has what it needs. */
function faultIn(block: ContentBlock): string | undefined {
  return (block.type === 'image' || block.type === 'audio') && block.data.startsWith('data:')
    ? '"data" must be base64 without "data:" before it'
    : undefined
}

/** What a block of each type needs. */
const NEEDS: Readonly<Record<string, string>> = {
  text: 'a string "text"',
  image: 'strings "data" (base64) and "mimeType"',
  audio: 'strings "data" (base64) and "mimeType"',
  resource_link: 'strings "uri" and "name"',
  resource: 'a "resource" with a string "uri" and a string "text" or "blob" (base64)',
}

function faultOf(item: unknown): string {
  const type = isObject(item) ? item['type'] : undefined
  const needs = typeof type === 'string' && Object.hasOwn(NEEDS, type) ? NEEDS[type] : undefined
  if (needs !== undefined) return `one of type "${String(type)}" needs ${needs}`
  const found =
    typeof type === 'string'
      ? JSON.stringify(type.slice(0, 50))
      : type === undefined
        ? 'missing'
        : `a ${typeof type}`
  return `its "type" is ${found}; it must be one of ${Object.keys(NEEDS).join(', ')}`
}

function toJson(value: unknown): string {
  if (value instanceof Error) throw value
  if ((value instanceof Map || value instanceof Set) && !('toJSON' in value))
    throw new TypeError('its result is not JSON; return a plain object or an array')
  try {
    // Functions and symbols are not JSON at all.
    return JSON.stringify(value) ?? 'null'
  } catch (error) {
    throw new TypeError(
      `its result cannot be written as JSON: ${error instanceof Error ? error.message : 'it is not JSON'}`,
      {
        cause: error,
      },
    )
  }
}

/** Whether a value is a content block, complete and of the right types. */
function isBlock(value: unknown): value is ContentBlock {
  if (!isObject(value) || 'toJSON' in value) return false
  switch (value['type']) {
    case 'text':
      return typeof value['text'] === 'string'
    case 'image':
    case 'audio':
      return typeof value['data'] === 'string' && typeof value['mimeType'] === 'string'
    case 'resource_link':
      return typeof value['uri'] === 'string' && typeof value['name'] === 'string'
    case 'resource': {
      const resource = value['resource']
      return (
        isObject(resource) &&
        typeof resource['uri'] === 'string' &&
        (typeof resource['text'] === 'string' || typeof resource['blob'] === 'string')
      )
    }
    default:
      return false
  }
}

import { isObject, isThenable } from '../../jsonrpc/message.js'
import type { CallToolResult, ContentBlock } from '../../protocol/model.js'
import { type Checker, type Outcome, describeIssues } from '../../schema/standard.js'
import { type ToolResult, isBranded } from '../define.js'

/**
 * What a handler returned, as a result. With an `output` schema the return
 * value is the structured value, whatever it looks like; without one, strings
 * and content blocks are content, and anything else becomes JSON text.
 * Throws where the value does not fit the schema or cannot be written as JSON.
 */
export function resultOf(returned: unknown, output: Checker | undefined): CallToolResult | Promise<CallToolResult> {
  if (typeof returned === 'string' && output === undefined) return { content: [{ type: 'text', text: returned }], isError: false }
  const parts: ToolResult = isBranded(returned) ? returned : output === undefined ? { content: contentOf(returned) } : { value: returned }
  // The success schema says nothing about failures.
  if (output === undefined || parts.isError === true) return assemble(parts, parts.value)
  const outcome = output.check(asJson(parts.value))
  return isThenable(outcome)
    ? Promise.resolve(outcome).then((checked) => assemble(parts, fitting(checked)))
    : assemble(parts, fitting(outcome))
}

/** The value as JSON will carry it: a date is a text, and what has no JSON is not there. */
function asJson(value: unknown): unknown {
  if (isPlainJson(value)) return value
  const text = value === undefined ? undefined : toJson(value)
  return text === undefined ? undefined : JSON.parse(text)
}

function isPlainJson(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return typeof value !== 'number' || Number.isFinite(value)
  if (Array.isArray(value)) return value.every(isPlainJson)
  const prototype: unknown = Object.getPrototypeOf(value)
  return (prototype === Object.prototype || prototype === null) && !('toJSON' in value) && Object.values(value).every(isPlainJson)
}

function fitting(outcome: Outcome): unknown {
  if (outcome.issues === undefined) return outcome.value
  throw new TypeError(`its result does not match its output schema: ${describeIssues(outcome.issues)}`)
}

function assemble({ content, meta, isError }: ToolResult, value: unknown): CallToolResult {
  if (meta !== undefined && !isObject(meta)) throw new TypeError('its result has a `meta` that is no object')
  const blocks = content === undefined ? [] : blocksOf(content)
  // A client that does not read structured content still gets the value, as text.
  if (value !== undefined && content === undefined) blocks.push({ type: 'text', text: toJson(value) })
  const result: CallToolResult = { content: blocks, isError: isError === true }
  if (value !== undefined) result.structuredContent = value
  if (meta !== undefined) result._meta = meta
  return result
}

function contentOf(value: unknown): ContentBlock[] {
  if (value === undefined) return []
  if (isBlock(value)) return [value]
  if (Array.isArray(value) && value.some(isBlock) && value.every((item) => typeof item === 'string' || isBlock(item)))
    return blocksOf(value)
  return [{ type: 'text', text: toJson(value) }]
}

export function blocksOf(content: string | ContentBlock | readonly (string | ContentBlock)[]): ContentBlock[] {
  const items = typeof content === 'string' || !Array.isArray(content) ? [content] : content
  return items.map((item: string | ContentBlock) => {
    if (typeof item === 'string') return { type: 'text', text: item }
    if (!isBlock(item)) throw new TypeError('its result has content that is neither a string nor a content block')
    return item
  })
}

function toJson(value: unknown): string {
  try {
    // Functions and symbols are not JSON at all.
    return JSON.stringify(value) ?? 'null'
  } catch (error) {
    throw new TypeError(`its result cannot be written as JSON: ${error instanceof Error ? error.message : 'it is not JSON'}`, {
      cause: error,
    })
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

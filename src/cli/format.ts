import { isObject } from '../jsonrpc/message.js'
import type { ContentBlock, ResourceContents } from '../protocol/model.js'

/** Truncates a text to `max` characters and appends its length. */
export function truncate(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max)}… (${text.length} characters)`
}

/** Maximum characters of an indented text. */
export const MAX_TEXT = 5000

/** A text of a server with each of its lines indented. */
export function indented(text: string, by: string): string {
  return truncate(String(text).trim(), MAX_TEXT).replaceAll(/^/gm, by)
}

/** Content blocks as text; blocks other than text are summarized. */
export function contentText(content: readonly ContentBlock[]): string {
  return content.map((block) => blockText(block)).join('\n')
}

function blockText(block: ContentBlock): string {
  if (!isObject(block)) return JSON.stringify(block) // an invalid block
  switch (block.type) {
    case 'text':
      return String(block.text)
    case 'image':
    case 'audio':
      return `[${block.type} ${block.mimeType}, ${sizeOf(block.data)} bytes]`
    case 'resource_link':
      return `[resource ${block.uri}${block.name === block.uri ? '' : ` ${block.name}`}]`
    case 'resource':
      return isObject(block.resource) ? resourceText(block.resource) : JSON.stringify(block)
    default:
      return JSON.stringify(block)
  }
}

function resourceText({
  uri,
  mimeType = 'application/octet-stream',
  text,
  blob,
}: ResourceContents): string {
  return text ?? `[${uri}, ${mimeType}, ${sizeOf(blob ?? '')} bytes]`
}

function sizeOf(base64: unknown): number {
  return Buffer.byteLength(String(base64), 'base64')
}

/** A short form of a JSON Schema: `string`, `"a" | "b"`, `number[]`. */
export function schemaText(schema: unknown): string {
  if (!isObject(schema)) return 'any'
  const { const: constant, enum: values, type, items, anyOf, oneOf, $ref: ref } = schema
  if ('const' in schema) return JSON.stringify(constant)
  if (Array.isArray(values)) return values.map((value) => JSON.stringify(value)).join(' | ')
  if (type === 'array') {
    const item = schemaText(items)
    return item.includes(' ') ? `(${item})[]` : `${item}[]`
  }
  if (typeof type === 'string') return type
  if (Array.isArray(type)) return type.join(' | ')
  const choices = anyOf ?? oneOf
  if (Array.isArray(choices)) return [...new Set(choices.map(schemaText))].join(' | ')
  return typeof ref === 'string' ? (ref.split('/').at(-1) ?? ref) : 'any'
}

import { isObject } from '../jsonrpc/message.js'
import { schemaText, truncate } from './format.js'
import { UsageError, suggestion } from './options.js'
import { type Leaf, itemOf, leavesOf } from './schema-leaves.js'

/** Maximum characters to show of a type and of a value. */
const MAX_SHOWN = 200
/** A number in JSON, also with a sign, or without digits before or after the point. */
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i

/** A value that fits the text, or undefined. */
type Candidate = { value: unknown } | undefined
type Reader = (text: string, leaf: Leaf, root: unknown) => Candidate

/** By the precision of what they accept: text fits `string` always, so it comes late. */
const READERS: readonly Reader[] = [
  listed,
  ofType('null', (text) => (text === 'null' ? { value: null } : undefined)),
  ofType('boolean', (text) =>
    text === 'true' || text === 'false' ? { value: text === 'true' } : undefined,
  ),
  ofType('integer', (text) => {
    const number = numberOf(text)
    return Number.isSafeInteger(number) ? { value: number } : undefined
  }),
  ofType('number', (text) => {
    const number = numberOf(text)
    return number === undefined ? undefined : { value: number }
  }),
  ofType('object', (text) => json(text, isObject)),
  ofType('array', (text) => json(text, Array.isArray)),
  ofType('string', (text) => ({ value: text })),
  ofType('array', (text, leaf, root) => {
    // It was meant as JSON, and is not.
    if (text.startsWith('[')) return undefined
    return wrapped(convert(text, itemOf(leaf, 0), root))
  }),
  ofType(undefined, (text) => json(text, () => true) ?? { value: text }),
]

/** Converts the text of an argument to the type that its schema asks for. */
export function typedText(name: string, text: string, schema: unknown, root: unknown): unknown {
  const found = convert(text, schema, root)
  if (found !== undefined) return found.value
  throw new UsageError(`${name}: ${problemOf(text, schema, root)}`)
}

function convert(text: string, schema: unknown, root: unknown): Candidate {
  const leaves = leavesOf(schema, root)
  for (const reader of READERS) {
    for (const leaf of leaves) {
      const found = reader(text, leaf, root)
      if (found !== undefined) return found
    }
  }
  return undefined
}

function ofType(type: string | undefined, reader: Reader): Reader {
  return (text, leaf, root) =>
    leaf.type === type && valuesOf(leaf) === undefined ? reader(text, leaf, root) : undefined
}

/** The values of `enum` or `const`. */
function valuesOf(leaf: Leaf): readonly unknown[] | undefined {
  if ('const' in leaf) return [leaf['const']]
  const { enum: values } = leaf
  return Array.isArray(values) ? values : undefined
}

function listed(text: string, leaf: Leaf): Candidate {
  const values = valuesOf(leaf) ?? []
  const found = values.find((value) => shownValue(value) === text)
  return found === undefined ? undefined : { value: found }
}

function shownValue(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function numberOf(text: string): number | undefined {
  const number = NUMBER.test(text) ? Number(text) : NaN
  return Number.isFinite(number) ? number : undefined
}

function json(text: string, accepts: (value: unknown) => boolean): Candidate {
  try {
    const value = JSON.parse(text) as unknown
    return accepts(value) ? { value } : undefined
  } catch {
    return undefined
  }
}

function wrapped(item: Candidate): Candidate {
  return item === undefined ? undefined : { value: [item.value] }
}

function problemOf(text: string, schema: unknown, root: unknown): string {
  const leaves = leavesOf(schema, root)
  const [only] = leaves
  if (leaves.length === 1 && only?.type === 'array' && !text.startsWith('['))
    return problemOf(text, itemOf(only, 0), root)
  const invalid = `invalid value ${JSON.stringify(truncate(text, MAX_SHOWN))}`
  const values = leaves.flatMap((leaf) => valuesOf(leaf) ?? []).map(shownValue)
  const types = leaves.filter((leaf) => valuesOf(leaf) === undefined)
  if (types.length === 0 && values.length > 0)
    return `${invalid}; expected ${truncate(values.join(', '), 1000)}${suggestion(text, values)}`
  const wanted = [...new Set(leaves.map(typeText))].join(' or ')
  return `${invalid}; expected ${wanted === '' ? truncate(schemaText(schema), MAX_SHOWN) : wanted}`
}

/** What to type for a schema. */
function typeText(leaf: Leaf): string {
  const values = valuesOf(leaf)
  if (values !== undefined) return truncate(values.map(shownValue).join(', '), MAX_SHOWN)
  switch (leaf.type) {
    case 'boolean':
      return 'true or false'
    case 'integer':
      return 'an integer'
    case 'number':
      return 'a number'
    case 'object':
      return `an object as JSON, such as '{"name":"value"}'`
    case 'array':
      return 'an array as JSON, or the name once for each item'
    case 'null':
      return 'null'
    default:
      return 'a string'
  }
}

import { isObject } from '../jsonrpc/message.js'
import type { GivenArgument } from './arguments.js'
import { schemaText, truncate } from './format.js'
import { UsageError, suggestion } from './options.js'
import { additionalOf, itemOf, leavesOf, propertiesOf, requiredOf } from './schema-leaves.js'
import { typedText } from './typed-text.js'

/** Maximum characters to show of a type. */
const MAX_TYPE = 200

/**
 * The arguments of a tool: those of `--args`, then those of `name=value`, typed by the input schema. A repeated name is an
 * array; `a.b=1` is a member of the object `a`, unless the tool has an argument `a.b`.
 */
export function typedArguments(
  args: Readonly<Record<string, unknown>>,
  given: readonly GivenArgument[],
  schema: unknown,
): Record<string, unknown> {
  const typed = { ...args, ...objectOf(given, schema, { root: schema, prefix: '' }) }
  const missing = requiredOf(schema, schema).filter((name) => !Object.hasOwn(typed, name))
  if (missing.length === 0) return typed
  const known = propertiesOf(schema, schema)
  const shown = missing.map((name) => {
    const type = truncate(schemaText(known.get(name)), MAX_TYPE)
    return `${name} (${type})`
  })
  throw new UsageError(`Missing argument${missing.length === 1 ? '' : 's'}: ${shown.join(', ')}`)
}

interface Place {
  /** The schema that references point into. */
  root: unknown
  /** The name of the object with a dot, for messages. */
  prefix: string
}

interface Group {
  direct: GivenArgument['given'][]
  members: GivenArgument[]
}

function objectOf(
  given: readonly GivenArgument[],
  schema: unknown,
  { root, prefix }: Place,
): Record<string, unknown> {
  const known = propertiesOf(schema, root)
  const groups = new Map<string, Group>()
  for (const { name, given: value } of given) {
    const [key, member] = findProperty(name, known, root)
    if (member === undefined && !known.has(key)) checkUnknown(name, schema, known, { root, prefix })
    const group = groups.get(key) ?? { direct: [], members: [] }
    groups.set(key, group)
    if (member === undefined) group.direct.push(value)
    else group.members.push({ name: member, given: value })
  }
  const entries = [...groups].map(([key, { direct, members }]) => {
    const property = known.get(key) ?? additionalOf(schema, root)
    const name = `${prefix}${key}`
    if (members.length === 0) return [key, valueOf(name, direct, property, root)] as const
    if (direct.length > 0)
      throw new UsageError(`${name} and ${name}.${members[0]?.name} cannot be combined; use one`)
    return [key, objectOf(members, property, { root, prefix: `${name}.` })] as const
  })
  return Object.fromEntries(entries)
}

/** The property that a name means: the name itself, or the part before one of its dots if that is an object. */
function findProperty(
  name: string,
  known: ReadonlyMap<string, unknown>,
  root: unknown,
): [key: string, member: string | undefined] {
  if (known.has(name)) return [name, undefined]
  for (let dot = name.indexOf('.'); dot > 0; dot = name.indexOf('.', dot + 1)) {
    const [key, member] = [name.slice(0, dot), name.slice(dot + 1)]
    const isObjectType = leavesOf(known.get(key), root).some(({ type }) => type === 'object')
    if (known.has(key) && isObjectType && member !== '') return [key, member]
  }
  return [name, undefined]
}

function checkUnknown(
  name: string,
  schema: unknown,
  known: ReadonlyMap<string, unknown>,
  { root, prefix }: Place,
): void {
  const leaves = leavesOf(schema, root)
  const isOpen = leaves.some(
    ({ additionalProperties, patternProperties }) =>
      additionalProperties === true ||
      isObject(additionalProperties) ||
      isObject(patternProperties) ||
      (known.size === 0 && additionalProperties !== false),
  )
  if (isOpen || leaves.length === 0) return
  const names = [...known.keys()].map((each) => `${prefix}${each}`)
  const hint = suggestion(`${prefix}${name}`, names)
  const expected = names.length === 0 ? '; it takes no arguments' : `; expected ${names.join(', ')}`
  throw new UsageError(
    `Unknown argument ${JSON.stringify(`${prefix}${name}`)}${hint === '' ? truncate(expected, 1000) : hint}`,
  )
}

function valueOf(
  name: string,
  given: readonly GivenArgument['given'][],
  schema: unknown,
  root: unknown,
): unknown {
  const [first] = given
  if (given.length === 1 && first !== undefined)
    return 'text' in first ? typedText(name, first.text, schema, root) : first.value
  const array = leavesOf(schema, root).find(({ type }) => type === 'array' || type === undefined)
  if (array === undefined)
    throw new UsageError(
      `${name} was given ${given.length} times, but is not an array; expected ${truncate(schemaText(schema), MAX_TYPE)}`,
    )
  return given.map((each, index) =>
    'text' in each ? typedText(name, each.text, itemOf(array, index), root) : each.value,
  )
}

import { isObject } from '../../jsonrpc/message.js'
import type { Revision } from '../../protocol/revisions/index.js'
import type { Fields } from '../../protocol/revisions/revision.js'
import { type Validator, type Schema, checker } from '../../schema/standard.js'

/*
 * Forms: flat objects of strings, numbers, booleans and enums. What a schema
 * says beyond that is not sent, but applies when the answer is validated.
 * https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#requested-schema
 */

type Kind = 'formString' | 'formNumber' | 'formBoolean' | 'formEnum' | 'formMultiEnum'
type Property = Readonly<Record<string, unknown>>

/** Compiled schemas. */
const ready = new WeakMap<Schema, Validator>()

export function formChecker(schema: Schema): Validator {
  const known = ready.get(schema)
  if (known !== undefined) return known
  const made = compile(schema)
  const { properties } = made.json
  if (made.json['type'] !== 'object' || !isObject(properties))
    throw new TypeError('The schema of a form must be an object with properties')
  for (const [name, property] of Object.entries(properties)) {
    if (kindOf(property) === undefined)
      throw new TypeError(
        `A form cannot have the field "${name}": use a string, a number, an integer, a boolean, an enum of strings, or an array of such an enum`,
      )
  }
  ready.set(schema, made)
  return made
}

function compile(schema: Schema | undefined): Validator {
  // JavaScript code may pass anything.
  if (schema === undefined)
    throw new TypeError('form: it has no "schema" (the "requestedSchema" of the protocol)')
  try {
    return checker(schema, 'input')
  } catch (error) {
    throw new TypeError(
      `form: its schema ${error instanceof Error ? error.message : String(error)}`,
      { cause: error },
    )
  }
}

/** The schema as the revision can express it; undefined if it cannot. */
export function projectForm(revision: Revision, { json }: Validator): object | undefined {
  // A revision without elicitation has no kind of field.
  if (revision.fields.formString.length === 0) return undefined
  const properties = Object.create(null) as Record<string, object> // a field may be named __proto__
  for (const [name, property] of Object.entries(
    json['properties'] as Readonly<Record<string, Property>>, // checked by formChecker
  )) {
    const shown = projectProperty(revision, property)
    if (shown === undefined) return undefined
    properties[name] = shown
  }
  const { required } = json
  return Array.isArray(required) && required.length > 0
    ? { type: 'object', properties, required: required as string[] }
    : { type: 'object', properties }
}

function projectProperty({ fields }: Revision, property: Property): object | undefined {
  const kind = kindOf(property)
  if (kind === undefined || fields[kind].length === 0) return undefined
  const choices =
    kind === 'formEnum' && !fields.formEnum.includes('oneOf') ? plainChoices(property) : property
  const shown: Record<string, unknown> = {}
  for (const name of fields[kind as keyof Fields]) {
    const value = choices[name]
    if (value === undefined || (name === 'format' && !FORMATS.has(value))) continue
    shown[name] = value
  }
  return shown
}

const FORMATS: ReadonlySet<unknown> = new Set(['email', 'uri', 'date', 'date-time'])

/** Titled enums in the older form (`enumNames`). */
function plainChoices(property: Property): Property {
  const { oneOf, ...rest } = property
  if (!isTitled(oneOf)) return property
  return {
    ...rest,
    enum: oneOf.map((choice) => choice.const),
    enumNames: oneOf.map((choice) => choice.title),
  }
}

function kindOf(property: unknown): Kind | undefined {
  if (!isObject(property)) return undefined
  const { type, enum: values, oneOf, items } = property
  switch (type) {
    case 'string':
      return isStringArray(values) || isTitled(oneOf)
        ? 'formEnum'
        : values === undefined && oneOf === undefined
          ? 'formString'
          : undefined
    case 'number':
    case 'integer':
      return 'formNumber'
    case 'boolean':
      return 'formBoolean'
    case 'array':
      return isObject(items) && (isStringArray(items['enum']) || isTitled(items['anyOf']))
        ? 'formMultiEnum'
        : undefined
    default:
      return undefined
  }
}

function isStringArray(value: unknown): value is string[] {
  return Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === 'string')
}

function isTitled(value: unknown): value is { const: string; title: string }[] {
  const titled = (item: unknown) =>
    isObject(item) && typeof item['const'] === 'string' && typeof item['title'] === 'string'
  return Array.isArray(value) && value.length > 0 && value.every(titled)
}

import { isOfType } from '../schema/assertions.js'
import { type JsonSchema, isObject } from '../schema/issue.js'

/*
 * Almost all messages of a capture are valid. A definition of an official schema is compiled to a function that says so
 * quickly; only what it does not accept is validated in full, for the issues.
 */

type Accepts = (value: unknown) => boolean

/** Keywords that do not restrict a value. */
const ANNOTATIONS = new Set(['description', 'title', 'default', 'format', '$schema', '$comment'])
const never: Accepts = () => false

/** Compiles definitions. What has an unknown keyword is never accepted. */
export class Acceptance {
  readonly #definitions: Readonly<Record<string, JsonSchema>>
  readonly #compiled = new Map<string, Accepts>()

  constructor(definitions: Readonly<Record<string, JsonSchema>>) {
    this.#definitions = definitions
  }

  /** Whether a value is valid; false if it is not, or if that is not certain. */
  accepts(definition: string, value: unknown): boolean {
    return this.#definition(definition)(value)
  }

  #definition(name: string): Accepts {
    const known = this.#compiled.get(name)
    if (known !== undefined) return known
    const schema = this.#definitions[name]
    if (schema === undefined) return never
    // Definitions refer to each other, and to themselves.
    const slot = { accepts: never }
    const indirect: Accepts = (value) => slot.accepts(value)
    this.#compiled.set(name, indirect)
    slot.accepts = this.#compile(schema)
    this.#compiled.set(name, slot.accepts)
    return slot.accepts
  }

  #compile(schema: unknown): Accepts {
    if (schema === true) return () => true
    if (!isObject(schema)) return never
    const parts = Object.entries(schema)
      .filter(([keyword]) => !ANNOTATIONS.has(keyword))
      .filter(([keyword]) => keyword !== 'properties' && keyword !== 'additionalProperties')
      .map(([keyword, value]) => this.#keyword(keyword, value))
    if ('properties' in schema || 'additionalProperties' in schema)
      parts.push(this.#members(schema))
    const [one = () => true, two] = parts
    if (two === undefined) return one
    return (value) => {
      for (const accepts of parts) if (!accepts(value)) return false
      return true
    }
  }

  #keyword(keyword: string, argument: unknown): Accepts {
    switch (keyword) {
      case '$ref':
        return this.#reference(String(argument))
      case 'type':
        return typeOf(Array.isArray(argument) ? argument : [argument])
      case 'const':
        return oneOf([argument])
      case 'enum':
        return Array.isArray(argument) ? oneOf(argument) : never
      case 'required':
        return Array.isArray(argument) ? required(argument.map(String)) : never
      case 'items':
        return this.#items(argument)
      case 'allOf':
        return this.#all(argument)
      case 'anyOf':
        return this.#any(argument)
      case 'minimum':
        return (value) => typeof value !== 'number' || value >= Number(argument)
      case 'maximum':
        return (value) => typeof value !== 'number' || value <= Number(argument)
      case 'maxItems':
        return (value) => !Array.isArray(value) || value.length <= Number(argument)
      default:
        return never
    }
  }

  #reference(reference: string): Accepts {
    const [, name] = /^#\/(?:definitions|\$defs)\/([^/~%]+)$/.exec(reference) ?? []
    return name === undefined ? never : this.#definition(name)
  }

  #items(schema: unknown): Accepts {
    const accepts = this.#compile(schema)
    return (value) => !Array.isArray(value) || value.every((item) => accepts(item))
  }

  #all(schemas: unknown): Accepts {
    if (!Array.isArray(schemas)) return never
    const parts = schemas.map((each) => this.#compile(each))
    return (value) => parts.every((accepts) => accepts(value))
  }

  #any(schemas: unknown): Accepts {
    if (!Array.isArray(schemas)) return never
    const parts = schemas.map((each) => this.#compile(each))
    return (value) => parts.some((accepts) => accepts(value))
  }

  #members({ properties, additionalProperties: additional = true }: JsonSchema): Accepts {
    const members = Object.entries(isObject(properties) ? properties : {}).map(
      ([name, schema]) => ({
        name,
        accepts: this.#compile(schema),
      }),
    )
    const known = new Map(members.map(({ name, accepts }) => [name, accepts]))
    const others = this.#compile(additional)
    const acceptsOthers: Accepts = (value) => {
      if (!isObject(value)) return true
      for (const name of Object.keys(value))
        if (!(known.get(name) ?? others)(value[name])) return false
      return true
    }
    // An inherited member would be taken for one of the value.
    const isInherited = members.some(({ name }) => name in Object.prototype)
    if (additional !== true || isInherited) return acceptsOthers
    return (value) => {
      if (!isObject(value)) return true
      for (const { name, accepts } of members) {
        const member = value[name]
        if (member !== undefined && !accepts(member)) return false
      }
      return true
    }
  }
}

const TYPES: ReadonlyMap<unknown, Accepts> = new Map<unknown, Accepts>([
  ['string', (value) => typeof value === 'string'],
  ['boolean', (value) => typeof value === 'boolean'],
  ['object', isObject],
  ['array', Array.isArray],
])

function typeOf(types: readonly unknown[]): Accepts {
  const [only] = types
  if (types.length === 1) return TYPES.get(only) ?? ((value) => isOfType(only, value))
  return (value) => types.some((type) => isOfType(type, value))
}

/** Primitive values only: others are left to the validator. */
function oneOf(allowed: readonly unknown[]): Accepts {
  const [only] = allowed
  if (allowed.length === 1 && typeof only === 'string') return (value) => value === only
  return (value) => (typeof value !== 'object' || value === null) && allowed.includes(value)
}

function required(names: readonly string[]): Accepts {
  return (value) => {
    if (!isObject(value)) return true
    for (const name of names) if (!Object.hasOwn(value, name)) return false
    return true
  }
}

import { type JsonSchema, describeIssues, isObject } from '../schema/issue.js'
import { check } from '../schema/json-schema.js'
import { lint } from '../schema/lint.js'
import { truncate } from './format.js'
import { FORMATS } from './elicit-formats.js'

/** Maximum characters of a title and of a description, and the maximum number of choices to show. */
const MAX_TITLE = 200
const MAX_DESCRIPTION = 2000
const MAX_CHOICES = 200

type Read = { value: unknown } | { problem: string }

/** One field of a form. https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#requested-schema */
export interface Field {
  name: string
  title: string
  /** Its type, limits, and whether it is optional. */
  facts: string[]
  description: string
  /** The lines that list the choices. */
  choices: string[]
  required: boolean
  /** The default. */
  preset: unknown
  /** Reads what the user has typed; never an empty text. */
  read(typed: string): Read
  show(value: unknown): string
}

/** The fields of a form. A schema that is not that of a form has none. */
export function fieldsOf(schema: unknown): Field[] {
  if (!isObject(schema) || !isObject(schema['properties'])) return []
  const { required } = schema
  const needed: unknown[] = Array.isArray(required) ? required : []
  return Object.entries(schema['properties']).map(([name, property]) =>
    fieldOf(name, isObject(property) ? property : {}, needed.includes(name)),
  )
}

function fieldOf(name: string, schema: JsonSchema, required: boolean): Field {
  const kind = kindOf(schema)
  const { title, description, default: preset } = schema
  return {
    name,
    title: inOneLine(typeof title === 'string' && title.trim() !== '' ? title : name),
    facts: [...kind.facts, required ? 'required' : 'optional'],
    description:
      typeof description === 'string' ? truncate(description.trim(), MAX_DESCRIPTION) : '',
    choices: kind.choices ?? [],
    required,
    preset: preset !== undefined && problemOf(schema, preset) === undefined ? preset : undefined,
    read(typed) {
      const read = kind.read(typed)
      if ('problem' in read) return read
      const problem = problemOf(schema, read.value)
      return problem === undefined ? read : { problem }
    },
    show: kind.show ?? shownValue,
  }
}

function inOneLine(text: string): string {
  return truncate(text.trim().replaceAll(/\s+/g, ' '), MAX_TITLE)
}

function shownValue(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** What a value lacks. A schema that cannot be used safely, such as one with a slow pattern, is left to the server. */
export function problemBy(schema: JsonSchema, value: unknown): string | undefined {
  if (lint(schema).length > 0) return undefined
  const { issues } = check(schema, value)
  return issues === undefined ? undefined : describeIssues(issues)
}

function problemOf(schema: JsonSchema, value: unknown): string | undefined {
  const problem = problemBy(schema, value)
  if (problem !== undefined) return problem
  const { format } = schema
  const rule =
    typeof format === 'string' && Object.hasOwn(FORMATS, format) ? FORMATS[format] : undefined
  if (rule === undefined || typeof value !== 'string' || rule.matches(value)) return undefined
  return `expected ${rule.description}`
}

interface Kind {
  facts: string[]
  choices?: string[]
  read(typed: string): Read
  show?(value: unknown): string
}

function kindOf(schema: JsonSchema): Kind {
  const single = optionsOf(schema)
  if (single !== undefined) return choice(single)
  const { type, items } = schema
  const several = type === 'array' && isObject(items) ? optionsOf(items) : undefined
  if (several !== undefined) return choices(several, schema)
  switch (type) {
    case 'string':
      return { facts: ['text', ...textLimits(schema)], read: (typed) => ({ value: typed }) }
    case 'number':
    case 'integer':
      return { facts: [String(type), ...limits(schema, 'minimum', 'maximum')], read: readNumber }
    case 'boolean':
      return {
        facts: ['yes or no'],
        read: readBoolean,
        show: (value) => (value === true ? 'yes' : 'no'),
      }
    default:
      return { facts: ['JSON'], read: readJson }
  }
}

function limits(schema: JsonSchema, lowest: string, highest: string, unit = ''): string[] {
  const [min, max] = [schema[lowest], schema[highest]]
  if (typeof min === 'number' && typeof max === 'number') return [`${min} to ${max}${unit}`]
  if (typeof min === 'number') return [`at least ${min}${unit}`]
  return typeof max === 'number' ? [`at most ${max}${unit}`] : []
}

function textLimits(schema: JsonSchema): string[] {
  const { format } = schema
  const rule =
    typeof format === 'string' && Object.hasOwn(FORMATS, format) ? FORMATS[format] : undefined
  const shown = rule === undefined ? [] : [rule.description]
  return [...shown, ...limits(schema, 'minLength', 'maxLength', ' characters')]
}

function readNumber(typed: string): Read {
  const text = typed.trim()
  const value = Number(text)
  return /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(text) && Number.isFinite(value)
    ? { value }
    : { problem: 'expected a number' }
}

function readBoolean(typed: string): Read {
  const text = typed.trim().toLowerCase()
  if (/^(?:y|yes|true)$/.test(text)) return { value: true }
  return /^(?:n|no|false)$/.test(text) ? { value: false } : { problem: 'expected yes or no' }
}

function readJson(typed: string): Read {
  try {
    return { value: JSON.parse(typed) as unknown }
  } catch {
    return { problem: 'expected JSON' }
  }
}

interface Choice {
  value: unknown
  title: string
}

/** The choices of `enum` with `enumNames`, or of `oneOf` or `anyOf` with `const` and `title`. */
function optionsOf(schema: JsonSchema): Choice[] | undefined {
  const { enum: values, enumNames, oneOf, anyOf } = schema
  const titled: unknown = oneOf ?? anyOf
  if (Array.isArray(values)) {
    const names: unknown[] = Array.isArray(enumNames) ? enumNames : []
    return values.map((value, index) => optionOf(value, names[index]))
  }
  if (!Array.isArray(titled) || !titled.every((each) => isObject(each) && 'const' in each))
    return undefined
  return titled.map((each: JsonSchema) => optionOf(each['const'], each['title']))
}

function optionOf(value: unknown, title: unknown): Choice {
  return {
    value,
    title: inOneLine(typeof title === 'string' && title !== '' ? title : shownValue(value)),
  }
}

/** Choices are numbered, unless a choice could be taken for a number. */
function numbered(options: readonly Choice[]): boolean {
  return !options.some(({ value, title }) => /^\d+$/.test(title) || /^\d+$/.test(shownValue(value)))
}

function listed(options: readonly Choice[]): string[] {
  const lines = options
    .slice(0, MAX_CHOICES)
    .map(({ title }, index) => (numbered(options) ? `${index + 1}. ${title}` : title))
  const more = options.length - lines.length
  return more > 0 ? [...lines, `… and ${more} more`] : lines
}

function findOption(options: readonly Choice[], typed: string): Choice | undefined {
  const text = typed.trim()
  const same = (other: string) => other.toLowerCase() === text.toLowerCase()
  return (
    options.find(({ value, title }) => shownValue(value) === text || title === text) ??
    options.find(({ value, title }) => same(shownValue(value)) || same(title)) ??
    (numbered(options) && /^\d+$/.test(text) ? options[Number(text) - 1] : undefined)
  )
}

function titleOf(options: readonly Choice[], value: unknown): string {
  return options.find((option) => option.value === value)?.title ?? shownValue(value)
}

function choice(options: readonly Choice[]): Kind {
  const how = numbered(options) ? 'a number or a name' : 'one of the names'
  return {
    facts: ['one choice'],
    choices: listed(options),
    read(typed) {
      const found = findOption(options, typed)
      return found === undefined
        ? { problem: `expected ${how} of the list` }
        : { value: found.value }
    },
    show: (value) => titleOf(options, value),
  }
}

function choices(options: readonly Choice[], schema: JsonSchema): Kind {
  return {
    facts: ['several choices, separated by commas', ...limits(schema, 'minItems', 'maxItems')],
    choices: listed(options),
    read(typed) {
      // A choice may have a comma itself.
      const whole = findOption(options, typed)
      const parts =
        whole === undefined ? typed.split(',').filter((part) => part.trim() !== '') : [typed]
      const found = parts.map((part) => findOption(options, part))
      const unknown = parts.find((_, index) => found[index] === undefined)
      if (unknown !== undefined)
        return { problem: `${JSON.stringify(unknown.trim())} is not one of the choices` }
      return { value: [...new Set(found.map((option) => option?.value))] }
    },
    show: (value) =>
      Array.isArray(value)
        ? value.map((each) => titleOf(options, each)).join(', ')
        : shownValue(value),
  }
}

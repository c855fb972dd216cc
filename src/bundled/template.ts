import { ToolError } from '../index.js'

/** A tool that was registered at run time: a text template. */
export interface TemplateTool {
  readonly name: string
  readonly description: string
  readonly template: string
}

const MAX_NAME = 64
const MAX_DESCRIPTION = 1000
const MAX_TEMPLATE = 10_000
const MAX_PARAMETERS = 20
/** Maximum length of a rendered template: a placeholder can occur often, and its value can be long. */
const MAX_RESULT = 1024 * 1024

const PLACEHOLDER = /\{([A-Za-z_][A-Za-z0-9_]{0,63})\}/g
/** Control characters other than tab and newline, and invisible and bidirectional characters. */
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff\u{e0000}-\u{e007f}]/u

/** Throws a ToolError if a definition is invalid. */
export function checkTemplateTool({ name, description, template }: TemplateTool): void {
  if (!/^[A-Za-z0-9_.-]+$/.test(name) || name.length > MAX_NAME)
    throw new ToolError(
      `The name ${JSON.stringify(name.slice(0, 100))} is not allowed: use 1 to ${MAX_NAME} of the characters A-Z a-z 0-9 _ - .`,
    )
  for (const [what, text, limit] of [
    ['description', description, MAX_DESCRIPTION],
    ['template', template, MAX_TEMPLATE],
  ] as const) {
    if (text === '') throw new ToolError(`The ${what} is empty`)
    if (text.length > limit)
      throw new ToolError(`The ${what} has ${text.length} characters; at most ${limit} are allowed`)
    if (HIDDEN.test(text) || /\p{Surrogate}/u.test(text))
      throw new ToolError(`The ${what} contains control or invisible characters`)
  }
  const count = parametersOf(template).length
  if (count > MAX_PARAMETERS)
    throw new ToolError(
      `The template has ${count} placeholders; at most ${MAX_PARAMETERS} are allowed`,
    )
}

/** The placeholder names of a template, without duplicates. */
export function parametersOf(template: string): string[] {
  return [...new Set([...template.matchAll(PLACEHOLDER)].map(([, name]) => name ?? ''))]
}

/** Replaces the placeholders with the values. Placeholders within a value are not replaced. */
export function render(template: string, values: Readonly<Record<string, string>>): string {
  const parts = template.split(PLACEHOLDER)
  const valueOf = (name: string) => (Object.hasOwn(values, name) ? (values[name] ?? '') : '')
  // Every second part is the name of a placeholder.
  const pieces = parts.map((part, index) => (index % 2 === 0 ? part : valueOf(part)))
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
  if (length > MAX_RESULT)
    throw new ToolError(`The text would have ${length} characters; the limit is ${MAX_RESULT}`)
  return pieces.join('')
}

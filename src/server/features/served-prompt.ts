import { isObject } from '../../jsonrpc/message.js'
import type { PromptListing } from '../../protocol/model.js'
import { namesOf } from '../../schema/names.js'
import type { Prompt, PromptArgument } from '../define.js'
import {
  FLAG,
  type Rule,
  SHARED_MEMBERS,
  TEXT,
  checkMemberNames,
  checkSharedProperties,
  checkListable,
  isFunction,
  isStrings,
  withoutUndefined,
} from './definition.js'

/** A prompt, ready to be listed and built. */
export interface ServedPrompt {
  readonly definition: Prompt
  readonly listing: PromptListing
  /** Whether an argument can be completed. */
  readonly completes: boolean
}

const MEMBERS = namesOf<Prompt>()(`${SHARED_MEMBERS} arguments build`)

type Fail = (problem: string) => Error

export function preparePrompt(definition: Prompt): ServedPrompt {
  if (!isObject(definition))
    throw new TypeError('A prompt must be an object, as prompt({ … }) makes it')
  const { name, title, description, icons, meta, arguments: declared = {}, build } = definition
  const fail = (problem: string) => new TypeError(`Prompt ${JSON.stringify(name)}: ${problem}`)
  if (typeof name !== 'string' || name === '') throw fail('its name must be a non-empty string')
  checkMemberNames(definition, MEMBERS, fail)
  if (typeof build !== 'function') throw fail('"build" must be a function')
  checkSharedProperties(definition, fail)
  checkArguments(declared, fail)
  const names = Object.entries(declared).map(([argument, declaration]) => ({
    name: argument,
    ...withoutUndefined({ title: declaration.title, description: declaration.description }),
    required: declaration.required !== false,
  }))
  const listing: PromptListing = {
    name,
    ...withoutUndefined({ title, description, icons, _meta: meta }),
  }
  if (names.length > 0) listing.arguments = names
  const completes = Object.values(declared).some(
    ({ values, complete }) => values !== undefined || complete !== undefined,
  )
  return { definition, listing: checkListable(listing, fail), completes }
}

const ARGUMENT_MEMBERS: Readonly<Record<keyof PromptArgument, Rule>> = {
  title: TEXT,
  description: TEXT,
  required: FLAG,
  values: [(value) => isStrings(value) && value.length > 0, 'an array of strings'],
  complete: [isFunction, 'a function of what has been typed'],
}
const STRINGS =
  'The arguments of a prompt are strings: name each, as in { code: { description: "What to review", required: false } }'

/** The members of a schema would be listed as arguments. */
function checkArguments(declared: unknown, fail: Fail): void {
  if (!isObject(declared) || isVendorSchema(declared)) {
    throw fail(
      `"arguments" must be an object with a member for each argument, not ${kindOf(declared)}. ${STRINGS}`,
    )
  }
  if (declared['type'] === 'object') throw fail(`"arguments" looks like a JSON Schema. ${STRINGS}`)
  for (const [name, declaration] of Object.entries(declared)) checkArgument(name, declaration, fail)
}

function checkArgument(name: string, declaration: unknown, fail: Fail): void {
  const argument = `the argument ${JSON.stringify(name)}`
  if (name === '') throw fail('an argument needs a name that is not empty')
  if (isVendorSchema(declaration)) throw fail(`${argument} is a schema. ${STRINGS}`)
  if (!isObject(declaration))
    throw fail(`${argument} must be an object, not ${kindOf(declaration)}. ${STRINGS}`)
  for (const [member, value] of Object.entries(declaration)) {
    const [holds, what] =
      (Object.hasOwn(ARGUMENT_MEMBERS, member) &&
        ARGUMENT_MEMBERS[member as keyof PromptArgument]) ||
      [] // it is one of them
    if (holds === undefined) {
      const known = Object.keys(ARGUMENT_MEMBERS).join(', ')
      throw fail(
        `${argument} has the unknown member "${member}"; expected one of ${known}${member === 'type' ? `. ${STRINGS}` : ''}`,
      )
    }
    if (value !== undefined && !holds(value))
      throw fail(`"${member}" of ${argument} must be ${what}`)
    if (member === 'values' && Array.isArray(value) && new Set(value).size < value.length)
      throw fail(`"values" of ${argument} has the same value twice`)
  }
}

function kindOf(value: unknown): string {
  if (isVendorSchema(value)) return 'a schema'
  return Array.isArray(value) ? 'an array' : value === null ? 'null' : typeof value
}

/** A schema of zod, valibot, arktype or the like: an object or a function. */
function isVendorSchema(value: unknown): boolean {
  const members = Object(value) as object
  return '~standard' in members || '_def' in members
}

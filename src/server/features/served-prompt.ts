import type { PromptListing } from '../../protocol/model.js'
import { checkSlips } from '../../schema/names.js'
import type { Prompt } from '../define.js'
import { checkFacts, listable, present } from './definition.js'

/** A prompt, ready to be listed and built. */
export interface ServedPrompt {
  readonly definition: Prompt
  readonly listing: PromptListing
}

const MEMBERS = {
  name: true,
  title: true,
  description: true,
  icons: true,
  meta: true,
  visible: true,
  scopes: true,
  arguments: true,
  build: true,
} as const satisfies Record<keyof Prompt, true>

export function preparePrompt(definition: Prompt): ServedPrompt {
  const { name, title, description, icons, meta, arguments: declared = {}, build } = definition
  const fail = (problem: string) => new TypeError(`Prompt ${JSON.stringify(name)}: ${problem}`)
  if (typeof name !== 'string' || name === '') throw fail('its name must be a non-empty string')
  if (typeof build !== 'function') throw fail('it has no "build"')
  checkSlips(definition, MEMBERS, fail)
  checkFacts(definition, fail)
  const names = Object.entries(declared).map(([argument, facts]) => ({
    name: argument,
    ...present({ title: facts.title, description: facts.description }),
    required: facts.required !== false,
  }))
  const listing: PromptListing = { name, ...present({ title, description, icons, _meta: meta }) }
  if (names.length > 0) listing.arguments = names
  return { definition, listing: listable(listing, fail) }
}

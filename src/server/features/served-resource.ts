import { isObject } from '../../jsonrpc/message.js'
import type { ResourceListing, ResourceTemplateListing } from '../../protocol/model.js'
import { COUNT } from '../../schema/lint.js'
import { namesOf } from '../../schema/names.js'
import type { Resource } from '../define.js'
import { MAX_LENGTH, UriTemplate } from '../uri-template.js'
import { normalizeUri } from '../uri.js'
import {
  type Rule,
  SHARED_MEMBERS,
  TEXT,
  checkMemberNames,
  checkMembers,
  checkSharedProperties,
  checkListable,
  isFunction,
  withoutUndefined,
} from './definition.js'

/** A resource, or a template of resources, ready to be listed and read. */
export interface ServedResource {
  readonly definition: Resource
  /** Undefined if the URI is fixed. */
  readonly template: UriTemplate | undefined
  readonly listing: ResourceListing | ResourceTemplateListing
  /** Of a fixed URI: its normal form. */
  readonly key: string
  /** Whether a variable can be completed. */
  readonly completes: boolean
}

const MEMBERS = namesOf<Resource>()(
  `${SHARED_MEMBERS} uri mimeType size annotations cache anyPath read list complete`,
)

const RULES: Readonly<Record<string, Rule>> = {
  name: TEXT,
  mimeType: TEXT,
  size: COUNT,
  list: [isFunction, 'a function'],
}

export function prepareResource(definition: Resource): ServedResource {
  if (!isObject(definition))
    throw new TypeError('A resource must be an object, as resource({ … }) makes it')
  const { uri, name, title, description, mimeType, size, annotations, icons, meta, read } =
    definition
  const fail = (problem: string) => new TypeError(`Resource ${JSON.stringify(uri)}: ${problem}`)
  checkMemberNames(definition, MEMBERS, fail)
  if (typeof uri !== 'string' || !/^[A-Za-z][A-Za-z0-9+.-]*:/.test(uri))
    throw fail('its URI must begin with a scheme, such as file: or config:')
  const normalized = normalizeUri(uri)
  if (normalized.text.length > MAX_LENGTH)
    throw fail(`the URI has more than ${MAX_LENGTH} characters; clients could not read it`)
  if (normalized.hasDotSegments)
    throw fail('its path has a segment "." or ".."; write the path without it')
  if (typeof read !== 'function') throw fail('"read" must be a function')
  checkSharedProperties(definition, fail)
  checkMembers(definition, RULES, fail)
  const template = uri.includes('{') ? makeTemplate(uri, fail) : undefined
  const { complete = {} } = definition
  const variables = template?.variables ?? []
  if (
    !isObject(complete) ||
    Object.entries(complete).some(
      ([variable, each]) =>
        !variables.includes(variable) || !(each === undefined || isFunction(each)),
    )
  ) {
    throw fail(
      `"complete" must be an object of functions, each under a variable of the URI: ${variables.join(', ') || 'none'}`,
    )
  }
  const shared = withoutUndefined({ title, description, mimeType, annotations, icons, _meta: meta })
  const listing =
    template === undefined
      ? { uri, name: name ?? uri, ...shared, ...withoutUndefined({ size }) }
      : { uriTemplate: uri, name: name ?? uri, ...shared }
  return {
    definition,
    template,
    listing: checkListable(listing, fail),
    key: normalized.text,
    completes: definition.complete !== undefined,
  }
}

function makeTemplate(uri: string, fail: (problem: string) => Error): UriTemplate {
  try {
    return new UriTemplate(uri)
  } catch (error) {
    throw fail(error instanceof Error ? error.message : String(error))
  }
}

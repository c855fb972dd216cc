import { INTERNAL_ERROR, INVALID_PARAMS, RpcError } from '../../jsonrpc/errors.js'
import { andThen } from '../../jsonrpc/hook.js'
import { type Params, isObject } from '../../jsonrpc/message.js'
import { truncate } from '../../jsonrpc/truncate.js'
import { RESOURCE_NOT_FOUND } from '../../protocol/errors.js'
import type { ReadResourceResult, ResourceContents, ResourceListing, ResourceTemplateListing } from '../../protocol/model.js'
import type { Context } from '../context.js'
import type { Resource } from '../define.js'
import { isToolError } from '../failure.js'
import type { Server } from '../server.js'
import { UNCACHED, allSeenBy, checkScopes, seenBy } from './definition.js'

/** How much of a URI an error repeats in its `data`, for programs. */
const MAX_URI = 2048

/** Every resource that has an address of its own, also those that a template lists. */
export async function allResources({ server, connection, call }: Context): Promise<ResourceListing[]> {
  // By URI: a page ends behind one, so that one that comes twice would lead back.
  const found = new Map<string, ResourceListing>()
  const seen = allSeenBy(server.resources.values(), connection.caller)
  const add = (listing: ResourceListing) => found.has(listing.uri) || found.set(listing.uri, listing)
  for (const { definition, template, listing } of seen instanceof Promise ? await seen : seen) {
    if (template === undefined) add(listing as ResourceListing) // a fixed one has a URI
    else if (definition.list !== undefined) for (const each of await definition.list(call)) add(checked(each, definition))
  }
  return [...found.values()]
}

function checked(listing: ResourceListing, { uri }: Resource): ResourceListing {
  if (isObject(listing) && typeof listing.uri === 'string' && typeof listing.name === 'string') return listing
  throw new TypeError(`Resource ${JSON.stringify(uri)}: "list" gave something without a "uri" and a "name"`)
}

export function allTemplates({ server, connection }: Context): ResourceTemplateListing[] | Promise<ResourceTemplateListing[]> {
  const templates = [...server.resources.values()].filter(({ template }) => template !== undefined)
  return andThen(allSeenBy(templates, connection.caller), (seen) => seen.map(({ listing }) => listing as ResourceTemplateListing)) // a template has one
}

export function readResource(context: Context, { uri }: Params): Promise<ReadResourceResult> {
  if (typeof uri !== 'string') throw new RpcError(INVALID_PARAMS, 'Invalid params: "uri" must be the URI of a resource')
  const found = findSeen(context, uri)
  // Read in the order of the requests, unless `visible` takes its time.
  return found instanceof Promise ? found.then((seen) => readFound(seen, uri, context)) : readFound(found, uri, context)
}

async function readFound(found: Found | undefined, uri: string, context: Context): Promise<ReadResourceResult> {
  if (found !== undefined) checkScopes(found.definition, context)
  const value = found === undefined ? undefined : await read(found, context)
  if (found === undefined || value === undefined)
    throw new RpcError(context.connection.revision.resourceNotFound, `Resource not found: ${truncate(uri)}`, {
      uri: truncate(uri, MAX_URI),
    })
  context.cache = { ...UNCACHED, ...found.definition.cache }
  return { contents: contentsOf(value, uri, found.definition.mimeType) }
}

async function read({ definition, variables }: Found, { call, connection }: Context): Promise<unknown> {
  try {
    return await definition.read(variables, call)
  } catch (error) {
    if (isToolError(error)) throw new RpcError(INTERNAL_ERROR, error.message)
    // A handler may know one code for what is not there; the client is told the one of its revision.
    if (!(error instanceof RpcError && error.code === RESOURCE_NOT_FOUND)) throw error
    throw new RpcError(connection.revision.resourceNotFound, error.message, error.data)
  }
}

interface Found {
  definition: Resource
  variables: Record<string, string | string[]>
}

/**
 * The resource at a URI, whoever asks: a fixed one first, then the templates in their order. One that the caller may not
 * see does not make way for another.
 */
export function findResource(server: Server, uri: string): Found | undefined {
  const fixed = server.resources.get(uri)
  if (fixed !== undefined && fixed.template === undefined) return { definition: fixed.definition, variables: {} }
  for (const { definition, template } of server.resources.values()) {
    const variables = template?.match(uri)
    if (variables === undefined) continue
    if (definition.anyPath === true || template?.leadsOut(variables) === false) return { definition, variables }
  }
  return undefined
}

/** The resource at a URI, if the caller may see it. */
function findSeen({ server, connection }: Context, uri: string): Found | undefined | Promise<Found | undefined> {
  const found = findResource(server, uri)
  return found && andThen(seenBy(found.definition, connection.caller), (seen) => (seen ? found : undefined))
}

/**
 * Whether a caller may hear of changes of a resource: not of one that it cannot see, but of one that nobody has defined yet.
 * Throws where its token does not grant what the definition asks for.
 */
export function mayWatch(context: Context, uri: string): boolean | Promise<boolean> {
  return andThen(findSeen(context, uri), (found) => {
    if (found === undefined) return !isDefined(context.server, uri)
    checkScopes(found.definition, context)
    return true
  })
}

function isDefined({ resources }: Server, uri: string): boolean {
  if (resources.get(uri) !== undefined) return true
  for (const { template } of resources.values()) if (template?.match(uri) !== undefined) return true
  return false
}

/** What `read` returned, as contents: text, bytes, or one or several of them in full. */
function contentsOf(value: unknown, uri: string, mimeType: string | undefined): ResourceContents[] {
  const items: unknown[] = Array.isArray(value) ? value : [value]
  return items.map((item) => {
    const type = mimeType === undefined ? {} : { mimeType }
    if (typeof item === 'string') return { uri, ...type, text: item }
    if (item instanceof Uint8Array) return { uri, ...type, blob: base64(item) }
    if (isObject(item) && (typeof item['text'] === 'string' || typeof item['blob'] === 'string')) return { uri, ...type, ...item }
    if (isObject(item) && item['blob'] instanceof Uint8Array) return { uri, ...type, ...item, blob: base64(item['blob']) }
    throw new TypeError('a resource must be read as text, bytes, or { text } or { blob }')
  })
}

function base64(bytes: Uint8Array): string {
  let binary = ''
  for (let at = 0; at < bytes.length; at += 0x8000) binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000))
  return btoa(binary)
}

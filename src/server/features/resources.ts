import { toBase64 } from '../../jsonrpc/base64.js'
import { INTERNAL_ERROR, INVALID_PARAMS, RpcError } from '../../jsonrpc/errors.js'
import { andThen } from '../../jsonrpc/hook.js'
import { type Params, isObject } from '../../jsonrpc/message.js'
import { truncate } from '../../jsonrpc/truncate.js'
import { RESOURCE_NOT_FOUND } from '../../protocol/errors.js'
import type {
  ReadResourceResult,
  ResourceContents,
  ResourceListing,
  ResourceTemplateListing,
} from '../../protocol/model.js'
import type { Context, InternalServer } from '../context.js'
import type { Resource } from '../define.js'
import { isToolError } from '../tool-error.js'
import { MAX_LENGTH } from '../uri-template.js'
import { type NormalizedUri, looseKey, normalizeUri } from '../uri.js'
import { visibleTo, checkScopes, convertResult, hintOf, withoutUndefined } from './definition.js'
import { isRestricted } from './resource-index.js'
import { wholeResult } from './result.js'

/** Maximum length of a URI in the `data` of an error. */
const MAX_URI = 2048

/** Every resource with a fixed URI, and those that templates list. */
export async function allResources(context: Context): Promise<ResourceListing[]> {
  const { server, connection, call } = context
  // Unique by URI, because cursors are URIs.
  const found = new Map<string, ResourceListing>()
  const seen = visibleTo(server.resources.values(), connection.caller)
  const add = (key: string, listing: ResourceListing) => found.has(key) || found.set(key, listing)
  const mayHide = Array.from(server.resources.entries()).some(
    ({ definition, enabled }) => !enabled || definition.visible !== undefined,
  )
  for (const { definition, template, listing, key } of seen instanceof Promise
    ? await seen
    : seen) {
    if (template === undefined) add(key, listing as ResourceListing) // a fixed one has a URI
    else if (definition.list !== undefined) {
      const given = await definition.list(call)
      const listing = convertResult(`"list" of resource ${definition.uri}`, context, () =>
        Array.from(entriesOf(given), (each) => checked(each, definition)),
      )
      for (const listed of listing) {
        // A template does not list what another definition hides from this caller.
        const match = mayHide ? matchUri(server, listed.uri) : undefined
        if (match === undefined || !(await isHidden(match, context)))
          add(normalizeUri(listed.uri).text, listed)
      }
    }
  }
  return [...found.values()]
}

/** What `list` returned: the entries, also as a `ListResourcesResult`. */
function entriesOf(listed: unknown): Iterable<ResourceListing> {
  const entries: unknown = isObject(listed) && 'resources' in listed ? listed['resources'] : listed
  if (typeof Object(entries)[Symbol.iterator] !== 'function')
    throw new TypeError('it must be an array')
  return entries as Iterable<ResourceListing> // each is looked at by `checked`
}

/** An entry of a template's list; its MIME type defaults to that of the template. */
function checked(listing: ResourceListing, { mimeType }: Resource): ResourceListing {
  if (!isObject(listing) || typeof listing.uri !== 'string' || typeof listing.name !== 'string')
    throw new TypeError('an item of it is without a "uri" and a "name"')
  // Also if it is null, as in a database.
  return mimeType === undefined || typeof listing.mimeType === 'string'
    ? listing
    : { ...listing, mimeType: listing.mimeType ?? mimeType }
}

export function allTemplates({
  server,
  connection,
}: Context): ResourceTemplateListing[] | Promise<ResourceTemplateListing[]> {
  const templates = [...server.resources.values()].filter(({ template }) => template !== undefined)
  return andThen(visibleTo(templates, connection.caller), (seen) =>
    seen.map(({ listing }) => listing as ResourceTemplateListing),
  ) // a template has one
}

export function readResource(context: Context, { uri }: Params): Promise<ReadResourceResult> {
  if (typeof uri !== 'string')
    throw new RpcError(INVALID_PARAMS, 'Invalid params: "uri" must be the URI of a resource')
  // Synchronous, so that handlers start in the order of their requests.
  return Promise.resolve(
    andThen(findForCaller(context, uri), ({ found }) => readFound(found, uri, context)),
  )
}

async function readFound(
  found: Found | undefined,
  uri: string,
  context: Context,
): Promise<ReadResourceResult> {
  const value = found === undefined ? undefined : await read(found, context)
  if (found === undefined || value === undefined)
    throw new RpcError(
      context.connection.revision.resourceNotFound,
      `Resource not found: ${truncate(uri)}`,
      {
        uri: truncate(uri, MAX_URI),
      },
    )
  return convertResult(`Resource ${found.definition.uri}`, context, () =>
    resultOf(value, uri, found.definition, context),
  )
}

async function read(
  { definition, variables }: Found,
  { call, connection }: Context,
): Promise<unknown> {
  try {
    return await definition.read(variables, call)
  } catch (error) {
    if (isToolError(error)) throw new RpcError(INTERNAL_ERROR, error.message)
    // The code of a missing resource depends on the revision.
    if (!(error instanceof RpcError && error.code === RESOURCE_NOT_FOUND)) throw error
    throw new RpcError(connection.revision.resourceNotFound, error.message, error.data)
  }
}

interface Found {
  definition: Resource
  variables: Record<string, string | string[]>
}

/** The definitions that concern a URI, whoever the caller is. */
interface UriMatch {
  /** The caller must be allowed to use all of them. */
  readonly entries: { readonly definition: Resource; readonly enabled: boolean }[]
  /** What is served; undefined if the path is not allowed. */
  found: Found | undefined
}

/**
 * A fixed resource comes first, then the templates in order: the first match serves the URI, even if this caller may
 * not use it. A restricted definition also guards other spellings of its URI that another definition would serve (see
 * `looseKey`). Undefined if no definition matches.
 */
function matchUri(
  { resources, resourceIndex }: InternalServer,
  uri: string,
  known?: NormalizedUri,
): UriMatch | undefined {
  // Percent-encoding makes a URI at most three times as long: a longer one cannot be that of a definition.
  if (uri.length > 3 * MAX_LENGTH) return undefined
  const normalized = known ?? normalizeUri(uri)
  const { text, withOriginalHost: cased, hasDotSegments: dotted } = normalized
  const fixed = resources.entry(text)
  if (fixed !== undefined && fixed.served.template === undefined)
    return { entries: [fixed], found: { definition: fixed.definition, variables: {} } }
  const match: UriMatch = { entries: [], found: undefined }
  if (dotted) return match
  if (text.length > MAX_LENGTH) return undefined
  let keys: string[] | undefined
  // A fragment names a part of a resource: it is no way around the restrictions of the whole.
  const looseKeys = () =>
    (keys ??= [normalized, { ...normalized, text: text.replace(/#.*/s, '') }].map(looseKey))
  for (const entry of resourceIndex.candidates(text, looseKeys)) {
    const { definition } = entry
    const { template } = entry.served
    if (template !== undefined && match.found !== undefined) continue
    const variables = template?.match(text, cased)
    if (variables === undefined) {
      if (!isRestricted(entry)) continue
      if (template !== undefined && !looseKeys().some((key) => template.matchesFolded(key)))
        continue
    } else if (definition.anyPath === true || template?.escapesPath(variables) === false)
      match.found = { definition, variables }
    match.entries.push(entry)
  }
  return match.entries.length > 0 ? match : undefined
}

function isHidden({ entries }: UriMatch, { connection }: Context): boolean | Promise<boolean> {
  if (entries.some(({ enabled }) => !enabled)) return true
  return andThen(visibleTo(entries, connection.caller), (seen) => seen.length < entries.length)
}

interface Lookup {
  /** Whether a definition matches the URI, though it may be hidden. */
  readonly known: boolean
  readonly found?: Found | undefined
}

/** The definition that the caller may use for a URI. Throws if its token lacks a required scope. */
function findForCaller(
  context: Context,
  uri: string,
  known?: NormalizedUri,
): Lookup | Promise<Lookup> {
  const match = matchUri(context.server, uri, known)
  if (match === undefined) return { known: false }
  return andThen(isHidden(match, context), (hidden) => {
    if (hidden) return { known: true }
    for (const { definition } of match.entries) checkScopes(definition, context)
    return { known: true, found: match.found }
  })
}

/** The definition that serves a URI. */
export function findResource(server: InternalServer, uri: string): Resource | undefined {
  return matchUri(server, uri)?.found?.definition
}

/**
 * Whether a caller may subscribe to a resource: not to one that it cannot see, but to one that is not defined yet.
 * Throws if its token lacks a required scope.
 */
export function maySubscribe(
  context: Context,
  uri: string,
  normalized: NormalizedUri,
): boolean | Promise<boolean> {
  return andThen(
    findForCaller(context, uri, normalized),
    ({ known, found }) => !known || found !== undefined,
  )
}

/** What `read` returned, as a result: text, bytes, or one or several contents in full; a `ReadResourceResult` is taken as it is. */
function resultOf(
  value: unknown,
  uri: string,
  { mimeType, cache }: Resource,
  context: Context,
): ReadResourceResult {
  const whole = wholeResult(value, 'ReadResourceResult', [
    'contents',
    '_meta',
    'ttlMs',
    'cacheScope',
  ])
  const { contents, _meta, ttlMs, cacheScope } = whole ?? { contents: value }
  context.cache = hintOf({ ...cache, ...withoutUndefined({ ttlMs, cacheScope }) }, TypeError)
  return {
    contents: contentsOf(contents, uri, mimeType),
    ...(_meta === undefined ? {} : { _meta }),
  }
}

function contentsOf(value: unknown, uri: string, mimeType: string | undefined): ResourceContents[] {
  const items: unknown[] = Array.isArray(value) ? value : [value]
  const type = mimeType === undefined ? {} : { mimeType }
  return Array.from(items, (item, index) => {
    if (typeof item === 'string') return { uri, ...type, text: item }
    if (item instanceof Uint8Array) return { uri, ...type, blob: toBase64(item) }
    const { text, blob } = isObject(item) ? item : {}
    if (
      !isObject(item) ||
      (typeof text !== 'string' && typeof blob !== 'string' && !(blob instanceof Uint8Array))
    )
      throw new TypeError(
        `contents[${index}] must be a string, bytes, or an object with a "text" or a "blob"`,
      )
    const named: Record<string, string> = {}
    for (const name of ['uri', 'mimeType']) {
      const member = item[name]
      if (member === undefined) continue
      if (typeof member !== 'string')
        throw new TypeError(`contents[${index}].${name} must be a string`)
      named[name] = member
    }
    const given = { ...item, uri, ...type, ...named }
    return blob instanceof Uint8Array ? { ...given, blob: toBase64(blob) } : given
  })
}

import { isObject } from '../../jsonrpc/message.js'
import { truncateJson } from '../../jsonrpc/truncate.js'
import {
  type FrontMatter,
  type Skill,
  type SkillResource,
  MAX_BYTES,
  MAX_FILES,
  SKILL_FILE,
  descriptionProblem,
  nameProblem,
} from './skill.js'

/* Entries of skills as clients receive them, and the paths of their files. */

/** A skill that a client does not load; the message says why. */
export class EntryError extends Error {
  override readonly name = 'EntryError'
}

/** The checked entry of a skill. Throws an `EntryError`. */
export function checkEntry(entry: unknown): Skill {
  const { uri, frontmatter, resources }: Readonly<Record<string, unknown>> = isObject(entry)
    ? entry
    : {}
  if (typeof uri !== 'string' || !/^[a-z][a-z0-9+.-]*:\/*[^/?#][^?#]*\/SKILL\.md$/i.test(uri))
    throw new EntryError(`its "uri" is ${truncateJson(uri)}; it must end with /${SKILL_FILE}`)
  if (!isObject(frontmatter)) throw new EntryError('it has no "frontmatter"')
  const { name, description } = frontmatter
  const folder = decoded(rootOf(uri).replace(/^.*[/:]/s, '')) ?? ''
  const problem = nameProblem(name, folder) ?? descriptionProblem(description)
  if (problem !== undefined) throw new EntryError(`in its front matter, ${problem}`)
  return {
    uri,
    frontmatter: frontmatter as FrontMatter, // as checked above
    resources: resources === 'dynamic' ? resources : checkResources(uri, resources),
  }
}

function checkResources(uri: string, resources: unknown): SkillResource[] {
  if (!Array.isArray(resources))
    throw new EntryError('its "resources" are neither a list nor "dynamic"')
  if (resources.length > MAX_FILES) throw new EntryError(`it has more than ${MAX_FILES} files`)
  const paths = new Set<string>()
  let bytes = 0
  const checked = resources.map((each: unknown) => {
    const resource = checkResource(each)
    const path = pathInSkill(uri, resource.uri)
    if (path === undefined)
      throw new EntryError(`${truncateJson(resource.uri)} is not a file within the skill`)
    if (paths.has(path)) throw new EntryError(`${truncateJson(resource.uri)} is listed twice`)
    paths.add(path)
    bytes += resource.size
    return resource
  })
  if (!paths.has(SKILL_FILE)) throw new EntryError(`its "resources" lack ${SKILL_FILE}`)
  if (bytes > MAX_BYTES) throw new EntryError(`its files have more than ${MAX_BYTES} bytes`)
  return checked
}

function checkResource(resource: unknown): SkillResource {
  const { uri, digest, size }: Readonly<Record<string, unknown>> = isObject(resource)
    ? resource
    : {}
  const sized = typeof size === 'number' && Number.isSafeInteger(size) && size >= 0
  if (typeof uri !== 'string' || typeof digest !== 'string' || !sized)
    throw new EntryError('one of its "resources" has no "uri", "digest" and "size"')
  if (!/^sha256:[0-9a-f]{64}$/.test(digest))
    throw new EntryError(`the digest of ${truncateJson(uri)} must be "sha256:" and 64 digits`)
  return { uri, digest, size }
}

/** The directory of a skill, without a slash at the end. */
export function rootOf(uri: string): string {
  return uri.slice(0, -`/${SKILL_FILE}`.length)
}

/** The decoded path of a file within a skill; undefined if it is not within it. */
export function pathInSkill(skill: string, uri: string): string | undefined {
  const root = `${rootOf(skill)}/`
  if (!uri.startsWith(root) || /[?#]/.test(uri)) return undefined
  const segments = uri.slice(root.length).split('/').map(decoded)
  return segments.every(isSegment) ? segments.join('/') : undefined
}

function isSegment(segment: string | undefined): segment is string {
  if (segment === undefined || segment === '' || segment === '.' || segment === '..') return false
  return !/[/\\\0]/.test(segment)
}

/** The path that a reference in a skill means: as a path of a file system, or a URI of the skill. */
export function resolvePath(skill: string, reference: string): string | undefined {
  if (/^[a-z][a-z0-9+.-]*:/i.test(reference)) return pathInSkill(skill, reference)
  const segments: string[] = []
  for (const segment of reference.split('/')) {
    if (segment === '.') continue
    if (segment === '..') {
      if (segments.pop() === undefined) return undefined
    } else segments.push(segment)
  }
  return segments.every(isSegment) ? segments.join('/') : undefined
}

/** Percent-encoding decoded; undefined if it is not valid. */
export function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** The fields in which two values of JSON differ. */
export function differences(one: unknown, other: unknown, field = ''): string[] {
  if (one === other) return []
  const pairs = pairsOf(one, other)
  if (pairs === undefined) return [field === '' ? 'everything' : field]
  return pairs.flatMap(([name, its, others]) =>
    differences(its, others, field === '' ? name : `${field}.${name}`),
  )
}

/** The members of two objects, or of two lists; undefined if they are neither. */
function pairsOf(
  one: unknown,
  other: unknown,
): (readonly [name: string, one: unknown, other: unknown])[] | undefined {
  if (Array.isArray(one) && Array.isArray(other))
    return Array.from({ length: Math.max(one.length, other.length) }, (_, index) => [
      String(index),
      one[index] as unknown,
      other[index] as unknown,
    ])
  if (!isObject(one) || !isObject(other) || Array.isArray(one) || Array.isArray(other))
    return undefined
  const names = new Set([...Object.keys(one), ...Object.keys(other)])
  const member = (of: object, name: string): unknown =>
    Object.hasOwn(of, name) ? (of as Record<string, unknown>)[name] : undefined // it has that member
  return Array.from(names, (name) => [name, member(one, name), member(other, name)])
}

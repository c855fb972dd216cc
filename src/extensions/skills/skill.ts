import { isObject } from '../../jsonrpc/message.js'
import { truncateJson } from '../../jsonrpc/truncate.js'

/* What servers and clients know of skills: https://agentskills.io/specification and the extension's specification. */

export const SKILLS = 'io.modelcontextprotocol/skills'
/** The file that makes a folder a skill. */
export const SKILL_FILE = 'SKILL.md'
/** Every host accepts a skill with these, including the files of nested skills. */
export const MAX_FILES = 512
export const MAX_BYTES = 16 * 1024 * 1024

/** The YAML front matter of a SKILL.md, as JSON. */
export interface FrontMatter {
  readonly name: string
  readonly description: string
  readonly [key: string]: unknown
}

/** A file of a skill. */
export interface SkillResource {
  readonly uri: string
  /** `sha256:` and 64 hexadecimal digits. */
  readonly digest: string
  /** Bytes. */
  readonly size: number
}

/** A skill, as `skills/list` and `skills/get` describe it. */
export interface Skill {
  /** The URI of its SKILL.md. */
  readonly uri: string
  readonly frontmatter: FrontMatter
  /** All of its files, SKILL.md included; `dynamic` if their contents are generated and have no digests. */
  readonly resources: readonly SkillResource[] | 'dynamic'
}

const NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/

/** What is wrong with the name of a skill in a folder. */
export function nameProblem(name: unknown, folder: string): string | undefined {
  if (typeof name !== 'string')
    return `"name" is ${truncateJson(name)}; it must be the name of the folder, "${folder}"`
  if (name.length > 64 || !NAME.test(name))
    return `"name" is ${truncateJson(name)}; use 1 to 64 lowercase letters, digits and single hyphens`
  if (name !== folder)
    return `"name" is "${name}", but the folder is "${folder}"; give both the same name`
  return undefined
}

/** What is wrong with the description of a skill. */
export function descriptionProblem(description: unknown): string | undefined {
  if (isText(description, 1024)) return undefined
  return '"description" must be a text of 1 to 1024 characters'
}

/** What the Agent Skills specification says of the other fields of front matter. */
export function fieldProblem({
  license,
  compatibility,
  metadata,
}: Readonly<Record<string, unknown>>): string | undefined {
  if (license !== undefined && typeof license !== 'string') return '"license" must be a text'
  if (compatibility !== undefined && !isText(compatibility, 500))
    return '"compatibility" must be a text of 1 to 500 characters'
  if (metadata === undefined) return undefined
  if (!isObject(metadata)) return '"metadata" must be a map of texts'
  for (const [key, value] of Object.entries(metadata)) {
    if (typeof value !== 'string')
      return `"metadata" has ${truncateJson(value)} for ${truncateJson(key)}; its values must be texts, so put it in quotes`
    if (key.startsWith('io.modelcontextprotocol/'))
      return `"metadata" has the key ${truncateJson(key)}, which is reserved for extensions of MCP; use another one`
  }
  return undefined
}

function isText(value: unknown, maxLength: number): boolean {
  if (typeof value !== 'string' || value.trim() === '') return false
  // Characters, not UTF-16 units; a longer one is not counted.
  return value.length <= 2 * maxLength && Array.from(value).length <= maxLength
}

/** The digest of bytes, as it is written in a skill's entry. */
export async function digestOf(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
  return `sha256:${Array.from(hash, (byte) => byte.toString(16).padStart(2, '0')).join('')}`
}

/** UTF-8 as text if that loses nothing; otherwise undefined. */
export function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

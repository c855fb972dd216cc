import type { ExtensionConnection } from '../../client/extension.js'
import { withCode } from '../../jsonrpc/errors.js'
import { isObject } from '../../jsonrpc/message.js'
import { truncateJson } from '../../jsonrpc/truncate.js'
import { parseSkillMarkdown } from './front-matter.js'
import type { SkillCache } from './skill-cache.js'
import {
  type FrontMatter,
  type Skill,
  type SkillResource,
  MAX_BYTES,
  SKILL_FILE,
  digestOf,
  textOf,
} from './skill.js'
import { decoded, differences, pathInSkill, resolvePath, rootOf } from './skill-entry.js'
import { pagesOf } from './skill-pages.js'

export interface SkillReadOptions {
  /** Cancels the request. */
  signal?: AbortSignal
}

/** A file of a skill. */
export interface SkillContents {
  readonly uri: string
  /** Its path within the skill. */
  readonly path: string
  readonly mimeType?: string
  readonly bytes: Uint8Array<ArrayBuffer>
  /** The same as text; undefined if it is not UTF-8. */
  readonly text: string | undefined
  /** Whether its size and digest are those of the entry; false if the skill is `dynamic`. */
  readonly verified: boolean
}

/** Something in a folder of a skill. */
export interface SkillFolderItem {
  readonly name: string
  /** Its path within the skill. */
  readonly path: string
  readonly kind: 'file' | 'directory'
}

/** What a skill needs of its client. */
export interface SkillHost {
  readonly connection: ExtensionConnection
  readonly cache: SkillCache
  /** Whether skills without digests are loaded. */
  readonly dynamic: boolean
}

/** A skill of the server, by the entry that was received. Nothing else of it has been read. */
export class ClientSkill implements Skill {
  readonly uri: string
  readonly frontmatter: FrontMatter
  readonly resources: readonly SkillResource[] | 'dynamic'
  readonly #host: SkillHost

  constructor({ uri, frontmatter, resources }: Skill, host: SkillHost) {
    this.uri = uri
    this.frontmatter = frontmatter
    this.resources = resources
    this.#host = host
  }

  get name(): string {
    return this.frontmatter.name
  }

  get description(): string {
    return this.frontmatter.description
  }

  /** A digest of the URIs and digests of all files: approval of the user is for this set. Undefined if it is `dynamic`. */
  async fingerprint(): Promise<string | undefined> {
    if (this.resources === 'dynamic') return undefined
    const files = this.resources.map(({ uri, digest }) => `${uri} ${digest}`).toSorted()
    return digestOf(new TextEncoder().encode(files.join('\n')))
  }

  /** Reads SKILL.md and verifies it. Call it when the skill is used, not before. */
  async load(options: SkillReadOptions = {}): Promise<LoadedSkill> {
    if (this.resources === 'dynamic' && !this.#host.dynamic)
      throw withCode(
        'SKILL_REFUSED',
        new Error(
          `${this.uri} is dynamic: its contents cannot be verified. To load such skills, use clientSkills({ dynamic: true })`,
        ),
      )
    const files = new SkillFiles(this, this.#host)
    const { text, verified } = await files.read(SKILL_FILE, options)
    if (text === undefined) throw mismatch(this.uri, 'it is not UTF-8')
    return new LoadedSkill(this, text, this.#checkFrontMatter(text), verified, files)
  }

  /** Compares the front matter of a SKILL.md with that of the entry; returns what follows it. */
  #checkFrontMatter(text: string): string {
    let parsed
    try {
      parsed = parseSkillMarkdown(text, { strict: false })
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      throw mismatch(this.uri, `its front matter cannot be read: ${reason}`)
    }
    const fields = differences(this.frontmatter, parsed.frontmatter)
    if (fields.length > 0)
      throw mismatch(this.uri, `its front matter differs from the entry in ${truncateJson(fields)}`)
    return parsed.body
  }
}

/** A skill whose SKILL.md was read and verified. Its files are those of the entry, whatever the server lists later. */
export class LoadedSkill {
  readonly skill: ClientSkill
  /** The whole SKILL.md. */
  readonly text: string
  /** SKILL.md without its front matter: the instructions. */
  readonly body: string
  /** False if the skill is `dynamic`. */
  readonly verified: boolean
  readonly #files: SkillFiles

  /** Made by `skill.load()`. */
  constructor(
    skill: ClientSkill,
    text: string,
    body: string,
    verified: boolean,
    files: SkillFiles,
  ) {
    this.skill = skill
    this.text = text
    this.body = body
    this.verified = verified
    this.#files = files
  }

  /** Reads a file by its path within the skill, or by a link in SKILL.md, and verifies it. */
  read(reference: string, options: SkillReadOptions = {}): Promise<SkillContents> {
    return this.#files.read(reference, options)
  }

  /** What is in a folder of the skill: as the entry says, without a request, unless the skill is `dynamic`. */
  folder(path = '', options: SkillReadOptions = {}): Promise<SkillFolderItem[]> {
    return this.#files.folder(path, options)
  }
}

/** The files of one skill. */
class SkillFiles {
  readonly #skill: Skill
  readonly #host: SkillHost
  /** By path; undefined if the skill is `dynamic`. */
  readonly #listed: ReadonlyMap<string, SkillResource> | undefined
  /** Bytes that were read of a `dynamic` skill. */
  #bytes = 0

  constructor(skill: Skill, host: SkillHost) {
    this.#skill = skill
    this.#host = host
    const { uri, resources } = skill
    if (resources !== 'dynamic')
      this.#listed = new Map(resources.map((each) => [pathInSkill(uri, each.uri) ?? '', each]))
  }

  async read(reference: string, { signal }: SkillReadOptions): Promise<SkillContents> {
    const { path, uri, listed } = this.#find(reference)
    const key = `${uri} ${listed?.digest}`
    const cached = listed && this.#host.cache.get(key)
    if (cached !== undefined)
      return { uri, path, bytes: cached, text: textOf(cached), verified: true }
    const options = signal === undefined ? {} : { signal }
    const result = await this.#host.connection.request('resources/read', { uri }, options)
    const { bytes, mimeType } = contentsOf(result['contents'], uri)
    if (listed === undefined) this.#count(bytes.length)
    else {
      await verify(bytes, listed)
      this.#host.cache.set(key, bytes)
    }
    const type = mimeType === undefined ? {} : { mimeType }
    return { uri, path, ...type, bytes, text: textOf(bytes), verified: listed !== undefined }
  }

  async folder(path: string, { signal }: SkillReadOptions): Promise<SkillFolderItem[]> {
    const within =
      path === '' ? '' : `${resolvePath(this.#skill.uri, path.replace(/\/$/, '')) ?? path}/`
    const paths =
      this.#listed === undefined
        ? await this.#directory(within, signal)
        : Array.from(this.#listed.keys(), (each) => ({ path: each, kind: 'file' as const }))
    const items = new Map<string, SkillFolderItem>()
    for (const each of paths) {
      if (!each.path.startsWith(within)) continue
      const [name = '', ...deeper] = each.path.slice(within.length).split('/')
      const kind = deeper.length > 0 ? 'directory' : each.kind
      if (name !== '') items.set(name, { name, path: within + name, kind })
    }
    if (items.size === 0 && within !== '' && this.#listed !== undefined)
      throw mismatch(`${rootOf(this.#skill.uri)}/${path}`, 'the entry lists no such folder')
    return [...items.values()]
  }

  /** What the server has in a folder of a `dynamic` skill. */
  async #directory(
    within: string,
    signal: AbortSignal | undefined,
  ): Promise<{ path: string; kind: 'file' | 'directory' }[]> {
    const { connection } = this.#host
    if (connection.settings?.['directoryRead'] !== true)
      throw withCode('NOT_SUPPORTED', new Error('The server does not list directories of skills'))
    const uri = `${rootOf(this.#skill.uri)}/${encodePath(within)}`.replace(/\/$/, '')
    const found: { path: string; kind: 'file' | 'directory' }[] = []
    for (const item of await pagesOf(
      connection,
      'resources/directory/read',
      'resources',
      { uri },
      signal,
    )) {
      const child = isObject(item) ? item : {}
      const path =
        typeof child['uri'] === 'string' ? pathInSkill(this.#skill.uri, child['uri']) : undefined
      const kind = child['mimeType'] === 'inode/directory' ? 'directory' : 'file'
      if (path !== undefined) found.push({ path, kind })
    }
    return found
  }

  /** The file that a reference means. Throws if it is not one of the skill. */
  #find(reference: string): { path: string; uri: string; listed: SkillResource | undefined } {
    const { uri } = this.#skill
    // As it is written, as a link that is encoded, and without the fragment of a link.
    const plain = reference.replace(/#.*$/s, '')
    for (const each of new Set([reference, plain, decoded(plain) ?? plain])) {
      const path = resolvePath(uri, each)
      if (path === undefined || path === '') continue
      if (this.#listed === undefined)
        return { path, uri: `${rootOf(uri)}/${encodePath(path)}`, listed: undefined }
      const listed = this.#listed.get(path)
      if (listed !== undefined) return { path, uri: listed.uri, listed }
    }
    throw mismatch(truncateJson(reference), 'the entry of the skill does not list it')
  }

  #count(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes > MAX_BYTES)
      throw withCode(
        'SKILL_REFUSED',
        new Error(`${this.#skill.uri}: more than ${MAX_BYTES} bytes were read`),
      )
  }
}

function encodePath(path: string): string {
  return path.split('/').map(encodeURIComponent).join('/')
}

async function verify(bytes: Uint8Array<ArrayBuffer>, listed: SkillResource): Promise<void> {
  if (bytes.length !== listed.size)
    throw mismatch(listed.uri, `it has ${bytes.length} bytes; the entry says ${listed.size}`)
  if ((await digestOf(bytes)) !== listed.digest)
    throw mismatch(listed.uri, 'its digest is not that of the entry')
}

/** The bytes of a file in a response to `resources/read`. */
function contentsOf(
  contents: unknown,
  uri: string,
): { bytes: Uint8Array<ArrayBuffer>; mimeType: string | undefined } {
  const items: readonly unknown[] = Array.isArray(contents) ? contents : []
  const item = items.find((each) => isObject(each) && each['uri'] === uri) ?? items[0]
  const { text, blob, mimeType }: Readonly<Record<string, unknown>> = isObject(item) ? item : {}
  const type = typeof mimeType === 'string' ? mimeType : undefined
  if (typeof text === 'string') return { bytes: new TextEncoder().encode(text), mimeType: type }
  if (typeof blob === 'string') return { bytes: bytesOf(blob, uri), mimeType: type }
  throw mismatch(uri, 'the response has neither "text" nor "blob"')
}

function bytesOf(base64: string, uri: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
  } catch {
    throw mismatch(uri, 'its "blob" is not Base64')
  }
}

function mismatch(uri: string, problem: string): Error {
  return withCode(
    'SKILL_MISMATCH',
    new Error(
      `${uri}: ${problem}. The skill may have changed: get its entry again, and let the user approve it`,
    ),
  )
}

import { INTERNAL_ERROR, RpcError } from '../../jsonrpc/errors.js'
import type { LogEntry } from '../../jsonrpc/log-entry.js'
import type { CacheHint } from '../../protocol/model.js'
import type { Call } from '../../server/call.js'
import type { InternalServer } from '../../server/context.js'
import { type Resource, resource } from '../../server/define.js'
import { SKILL_FILE, textOf } from './skill.js'
import type { SkillCatalog } from './skill-catalog.js'
import { FileChangedError } from './skill-folder.js'
import { pathKey } from './skill-path.js'
import type { FoundSkill, SkillDirectory, SkillFile, Snapshot } from './skill-scan.js'
import type { Visibility } from './visibility.js'

/** All files of skills. */
const FILES = 'skill://{+path}'

/** The files of skills as resources of a server: each SKILL.md is listed, the other files can be read. */
export class SkillResources {
  readonly #server: InternalServer
  readonly #catalog: SkillCatalog
  readonly #visibility: Visibility
  readonly #cache: CacheHint
  /** The problems that were reported last. */
  #reported = ''

  constructor(
    server: InternalServer,
    catalog: SkillCatalog,
    visibility: Visibility,
    cache: CacheHint,
  ) {
    this.#server = server
    this.#catalog = catalog
    this.#visibility = visibility
    this.#cache = cache
    const { skills } = catalog.snapshot
    server.resources.add(
      resource({
        uri: FILES,
        name: 'skill-files',
        description: 'The files of skills',
        cache,
        read: ({ path }, call) => this.#read(path, call),
      }),
      ...Array.from(skills.values(), (skill) => this.#resource(skill)),
    )
  }

  /** Watches the folders, and notifies clients of changes. */
  start(report: (entry: LogEntry) => void): void {
    this.#catalog.start({
      checked: (before, now) => {
        this.#report(now.problems, report)
        this.#apply(before, now)
      },
      failed: (error) => report({ level: 'error', message: 'skills: an update failed', error }),
    })
  }

  #report(problems: readonly string[], report: (entry: LogEntry) => void): void {
    const text = problems.join('\n  ')
    if (text !== '' && text !== this.#reported)
      report({ level: 'warning', message: `skills: some are not served:\n  ${text}` })
    this.#reported = text
  }

  #apply(before: Snapshot, now: Snapshot): void {
    const { resources } = this.#server
    for (const [key, { uri }] of before.skills) if (!now.skills.has(key)) resources.remove(uri)
    for (const [key, skill] of now.skills) {
      const { description } = skill.frontmatter
      const known = before.skills.get(key)
      if (known === undefined) resources.add(this.#resource(skill))
      else if (known.frontmatter.description !== description && resources.has(skill.uri))
        resources.update(skill.uri, { description })
    }
    for (const uri of changedUris(before, now)) this.#server.updated(uri)
  }

  #resource({ uri, path, frontmatter }: FoundSkill): Resource {
    const { name, description } = frontmatter
    const visible = {
      visible: (caller: Call['client']) => {
        const skill = this.#catalog.snapshot.skills.get(pathKey(`${path}/${SKILL_FILE}`))
        return skill !== undefined && this.#visibility.sees(caller, skill)
      },
    }
    return resource({
      uri,
      name,
      description,
      mimeType: 'text/markdown',
      cache: this.#cache,
      ...(this.#visibility.varies ? visible : {}),
      read: (_, call) => this.#read(`${path}/${SKILL_FILE}`, call),
    })
  }

  /** Undefined if there is no such file for the caller. */
  async #read(path: string, { client }: Call) {
    const { files } = await this.#catalog.current()
    const file = files.get(pathKey(path))
    if (file === undefined || !(await this.#visibility.seesAny(client, file.skills)))
      return undefined
    const bytes = await this.#bytes(file, path)
    if (bytes === undefined) return undefined
    const text = bytes.includes(0) ? undefined : textOf(bytes)
    return text === undefined
      ? { blob: bytes, mimeType: file.mimeType ?? 'application/octet-stream' }
      : { text, mimeType: file.mimeType ?? 'text/plain' }
  }

  /** Reads a file; if it has changed meanwhile, once more. Undefined if it is gone. */
  async #bytes(file: SkillFile, path: string): Promise<Uint8Array | undefined> {
    try {
      return (await this.#catalog.read(file)).bytes
    } catch (error) {
      if (!(error instanceof FileChangedError)) throw error
    }
    const { files } = await this.#catalog.current()
    const again = files.get(pathKey(path))
    if (again === undefined) return undefined
    try {
      return (await this.#catalog.read(again)).bytes
    } catch (error) {
      if (!(error instanceof FileChangedError)) throw error
      throw new RpcError(INTERNAL_ERROR, `${file.uri} is being changed; try again later`)
    }
  }
}

/** The files and directories that are not as they were. */
function* changedUris(before: Snapshot, now: Snapshot): Generator<string> {
  const files = new Map<string, SkillFile>([...before.files, ...now.files])
  for (const [key, { uri }] of files)
    if (before.files.get(key)?.identity.text !== now.files.get(key)?.identity.text) yield uri
  const directories = new Map<string, SkillDirectory>([...before.directories, ...now.directories])
  for (const [key, { uri }] of directories)
    if (namesIn(before.directories.get(key)) !== namesIn(now.directories.get(key))) yield uri
}

function namesIn(directory: SkillDirectory | undefined): string | undefined {
  return directory && [...directory.children.keys()].toSorted().join('/')
}

import { mediaTypeOf } from './media-type.js'
import { type SkillMarkdown, FrontMatterError, parseSkillMarkdown } from './front-matter.js'
import {
  type FrontMatter,
  MAX_BYTES,
  MAX_FILES,
  SKILL_FILE,
  descriptionProblem,
  fieldProblem,
  nameProblem,
  textOf,
} from './skill.js'
import {
  type FileIdentity,
  type FolderEntry,
  type Segments,
  FileChangedError,
  SkillFolder,
  compare,
} from './skill-folder.js'
import { pathKey, pathProblem, uriOf } from './skill-path.js'

/** Maximum files and folders that are looked at. */
const MAX_ENTRIES = 20_000
/** Maximum segments of a path. */
const MAX_DEPTH = 32
/** Maximum problems that are described. */
const MAX_PROBLEMS = 20

/** A file that is served. */
export interface SkillFile {
  readonly uri: string
  readonly path: string
  readonly name: string
  readonly mimeType: string | undefined
  readonly folder: SkillFolder
  readonly real: Segments
  readonly identity: FileIdentity
  /** The skill, and the skills that it is nested in. */
  readonly skills: FoundSkill[]
}

/** A skill in a folder. */
export interface FoundSkill {
  /** The URI of its SKILL.md. */
  readonly uri: string
  /** The path of its folder. */
  readonly path: string
  readonly frontmatter: FrontMatter
  /** All files, with those of nested skills. */
  readonly files: readonly SkillFile[]
}

/** A folder that is served. */
export interface SkillDirectory {
  readonly uri: string
  readonly name: string
  readonly children: Map<string, SkillFile | SkillDirectory>
  /** The skills that it is part of, or that are below it. */
  readonly skills: Set<FoundSkill>
}

/** What was found. Keys are those of `pathKey`. */
export interface Snapshot {
  /** By the path of the SKILL.md, in the order of URIs. */
  readonly skills: ReadonlyMap<string, FoundSkill>
  readonly files: ReadonlyMap<string, SkillFile>
  readonly directories: ReadonlyMap<string, SkillDirectory>
  readonly problems: readonly string[]
}

/** Front matter that was read before, by the identity of its file. */
export type KnownFrontMatter = ReadonlyMap<string, FrontMatter>

interface Draft {
  readonly path: string
  readonly folder: SkillFolder
  readonly files: SkillFile[]
  bytes: number
  frontmatter: FrontMatter | undefined
  valid: boolean
}

interface Pending {
  readonly folder: SkillFolder
  readonly path: string
  readonly real: Segments
  /** The skills that enclose it. */
  readonly drafts: readonly Draft[]
  /** The real paths of the directories that it is in: a link to one of them would have no end. */
  readonly above: ReadonlySet<string>
}

/** Looks for skills in folders, one directory a step: each step is short. */
export class SkillScan {
  readonly #known: KnownFrontMatter
  readonly #pending: Pending[] = []
  readonly #drafts = new Map<string, Draft>()
  readonly #files = new Map<string, SkillFile>()
  /** The directories of skills, also those without files. */
  readonly #inSkills: { readonly path: string; readonly drafts: readonly Draft[] }[] = []
  readonly #visit: (folder: string) => void
  readonly #problems: string[] = []
  #entries = 0

  /** `visit` is called with the absolute path of each directory, before it is read. */
  constructor(
    folders: readonly string[],
    known: KnownFrontMatter = new Map(),
    visit: (folder: string) => void = () => {},
  ) {
    this.#known = known
    this.#visit = visit
    for (const given of folders.toReversed())
      try {
        const folder = new SkillFolder(given)
        const above = new Set<string>()
        this.#pending.push({ folder, path: '', real: [], drafts: [], above })
      } catch (error) {
        this.#problem(given, `it cannot be opened as a folder (${codeOf(error)}); check the path`)
      }
  }

  /** Looks at one directory; false if there are no more. */
  step(): boolean {
    const next = this.#pending.pop()
    if (next === undefined) return false
    try {
      this.#scan(next)
    } catch (error) {
      if (!(error instanceof FileChangedError) && codeOf(error) !== 'ENOENT')
        this.#fail(next, [], `it cannot be read (${codeOf(error)})`)
    }
    return true
  }

  #scan(pending: Pending): void {
    const { folder, real, above } = pending
    this.#visit(folder.pathOf(real))
    const entries = folder.list(real)
    this.#entries += entries.length
    if (this.#entries > MAX_ENTRIES) {
      this.#problem(
        folder.root,
        `it has more than ${MAX_ENTRIES} files and folders; choose one that has skills only`,
      )
      this.#pending.length = 0
      return
    }
    const main = entries.find(({ name, kind }) => name === SKILL_FILE && kind === 'file')
    const found = main === undefined ? pending : this.#startSkill(pending, main)
    if (found.drafts.length > 0) this.#inSkills.push(found)
    const inside = new Set([...above, real.join('/')])
    const directories: Pending[] = []
    for (const entry of entries)
      if (entry.kind === 'directory') directories.push(...this.#enter(found, entry, inside))
      else this.#addFile(found, entry)
    this.#pending.push(...directories.toReversed())
  }

  /** The same directory, as that of a skill. */
  #startSkill(pending: Pending, main: FolderEntry): Pending {
    const { folder, drafts } = pending
    // The folder that was given may itself be a skill.
    const path = pending.path === '' ? folder.name : pending.path
    const before = this.#drafts.get(pathKey(path))
    if (before !== undefined) {
      const other = before.folder.pathOf([])
      this.#fail(
        pending,
        [SKILL_FILE],
        `another folder has the same skill, in ${other}; remove one`,
      )
      return { ...pending, path }
    }
    const draft: Draft = { path, folder, files: [], bytes: 0, frontmatter: undefined, valid: true }
    this.#drafts.set(pathKey(path), draft)
    const found = { ...pending, path, drafts: [...drafts, draft] }
    try {
      draft.frontmatter = this.#frontMatter(folder, main, path)
    } catch (error) {
      draft.valid = false
      if (!(error instanceof FrontMatterError || error instanceof FileChangedError)) throw error
      this.#problem(folder.pathOf(main.real), error.message)
    }
    return found
  }

  #frontMatter(folder: SkillFolder, main: FolderEntry, path: string): FrontMatter {
    const name = path.slice(path.lastIndexOf('/') + 1)
    const before = this.#known.get(main.identity.text)
    if (before !== undefined && before.name === name) return before
    const text = textOf(folder.readSync(main.real, MAX_BYTES).bytes)
    if (text === undefined) throw new FrontMatterError('it is not UTF-8; save it as UTF-8')
    const { frontmatter } = parseSkillMarkdown(text, { strict: true })
    return checkFrontMatter(frontmatter, name)
  }

  #enter(pending: Pending, entry: FolderEntry, above: ReadonlySet<string>): Pending[] {
    const path = pending.path === '' ? entry.name : `${pending.path}/${entry.name}`
    const { folder, drafts } = pending
    if (above.has(entry.real.join('/')))
      this.#fail(pending, [entry.name], 'it is a link to a folder that it is in; remove it')
    else if (path.split('/').length > MAX_DEPTH)
      this.#fail(pending, [entry.name], `it is more than ${MAX_DEPTH} folders deep; move it up`)
    else return [{ folder, path, real: entry.real, drafts, above }]
    return []
  }

  #addFile(pending: Pending, entry: FolderEntry): void {
    const { folder, drafts } = pending
    const { name, kind, real, identity } = entry
    if (kind === 'outside')
      return this.#fail(
        pending,
        [name],
        'it is a symbolic link that leads out of the folder, or nowhere; replace it with a copy, or add its folder to "folder"',
      )
    if (drafts.length === 0) {
      if (name.toUpperCase() === SKILL_FILE.toUpperCase())
        this.#fail(pending, [name], `it must be a file with the name ${SKILL_FILE}`)
      return
    }
    if (kind === 'unnamed')
      return this.#fail(pending, [name], 'its name is not valid UTF-8; rename it')
    if (kind === 'special')
      return this.#fail(pending, [name], 'it is neither a file nor a folder; remove it')
    const path = `${pending.path}/${name}`
    const problem = pathProblem(path)
    if (problem !== undefined) return this.#fail(pending, [name], problem)
    const mimeType = mediaTypeOf(name)
    const file = { uri: uriOf(path), path, name, mimeType, folder, real, identity, skills: [] }
    this.#files.set(pathKey(path), file)
    for (const draft of drafts) this.#count(draft, file)
  }

  #count(draft: Draft, file: SkillFile): void {
    if (!draft.valid) return
    draft.bytes += file.identity.size
    draft.files.push(file)
    if (draft.files.length <= MAX_FILES && draft.bytes <= MAX_BYTES) return
    const limit = draft.bytes > MAX_BYTES ? `${MAX_BYTES} bytes` : `${MAX_FILES} files`
    this.#reject(draft, `the skill has more than ${limit}, which hosts may refuse; make it smaller`)
  }

  #reject(draft: Draft, problem: string): void {
    draft.valid = false
    draft.files.length = 0
    this.#problem(`${draft.folder.root}: ${draft.path}`, problem)
  }

  /** A problem with something in a directory; the skills that it belongs to are not served. */
  #fail({ folder, real, drafts }: Pending, below: Segments, problem: string): void {
    for (const draft of drafts) draft.valid = false
    this.#problem(folder.pathOf([...real, ...below]), problem)
  }

  #problem(where: string, problem: string): void {
    if (this.#problems.length < MAX_PROBLEMS) this.#problems.push(`${where}: ${problem}`)
  }

  /** What was found, after the last step. */
  finish(): Snapshot {
    const skills = new Map<string, FoundSkill>()
    const served = new Map<Draft, FoundSkill>()
    for (const draft of [...this.#drafts.values()].toSorted((one, other) =>
      compare(one.path, other.path),
    )) {
      const { path, files, frontmatter } = draft
      if (!draft.valid || frontmatter === undefined || this.#isInOther(draft)) continue
      const ordered = files.toSorted((one, other) => compare(one.uri, other.uri))
      const skill = { uri: uriOf(`${path}/${SKILL_FILE}`), path, frontmatter, files: ordered }
      skills.set(pathKey(`${path}/${SKILL_FILE}`), skill)
      served.set(draft, skill)
      for (const file of files) file.skills.push(skill)
    }
    const directories = this.#inSkills.map(({ path, drafts }) => ({
      path,
      skills: drafts.flatMap((draft) => served.get(draft) ?? []),
    }))
    const files = new Map([...this.#files].filter(([, file]) => file.skills.length > 0))
    return {
      skills,
      files,
      directories: directoriesOf(directories, files.values()),
      problems: this.#problems,
    }
  }

  /** Whether it is within a skill of another folder, whose files would not be complete. */
  #isInOther({ path, folder }: Draft): boolean {
    for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1)) {
      const enclosing = this.#drafts.get(pathKey(path.slice(0, end)))
      if (enclosing === undefined || enclosing.folder === folder) continue
      this.#problem(
        `${folder.root}: ${path}`,
        `the skill "${enclosing.path}" of another folder would enclose it; move it, or put both into one folder`,
      )
      return true
    }
    return false
  }
}

/** Throws if front matter is not that of a skill in a folder of that name. */
function checkFrontMatter(frontmatter: SkillMarkdown['frontmatter'], folder: string): FrontMatter {
  const { name, description } = frontmatter
  const problem =
    nameProblem(name, folder) ?? descriptionProblem(description) ?? fieldProblem(frontmatter)
  if (problem !== undefined) throw new FrontMatterError(problem)
  return frontmatter as FrontMatter // as checked above
}

/** The directories of skills, and those above them. */
function directoriesOf(
  inSkills: Iterable<{ path: string; skills: readonly FoundSkill[] }>,
  files: Iterable<SkillFile>,
): ReadonlyMap<string, SkillDirectory> {
  const directories = new Map<string, SkillDirectory>()
  const directoryAt = (path: string): SkillDirectory => {
    const key = pathKey(path)
    const before = directories.get(key)
    if (before !== undefined) return before
    const end = path.lastIndexOf('/')
    const name = path.slice(end + 1)
    const made = { uri: uriOf(path), name, children: new Map(), skills: new Set<FoundSkill>() }
    directories.set(key, made)
    if (end !== -1) directoryAt(path.slice(0, end)).children.set(name, made)
    return made
  }
  for (const { path, skills } of inSkills)
    for (
      let end = path.length;
      skills.length > 0 && end > 0;
      end = path.lastIndexOf('/', end - 1)
    ) {
      const directory = directoryAt(path.slice(0, end))
      for (const skill of skills) directory.skills.add(skill)
    }
  for (const file of files)
    directoryAt(file.path.slice(0, file.path.lastIndexOf('/'))).children.set(file.name, file)
  return directories
}

function codeOf(error: unknown): string {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code
  return error instanceof Error ? error.message : String(error)
}

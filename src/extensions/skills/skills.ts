import { INVALID_PARAMS, INTERNAL_ERROR, RpcError } from '../../jsonrpc/errors.js'
import type { LogEntry } from '../../jsonrpc/log-entry.js'
import type { Params } from '../../jsonrpc/message.js'
import { truncateJson } from '../../jsonrpc/truncate.js'
import type { CacheHint } from '../../protocol/model.js'
import { checkNames, namesOf } from '../../schema/names.js'
import type { Call, Caller } from '../../server/call.js'
import { type InternalServer, checkServer } from '../../server/context.js'
import { type Extension, extension } from '../../server/extensions.js'
import { hintOf } from '../../server/features/definition.js'
import type { Server } from '../../server/server.js'
import { type Skill, SKILLS } from './skill.js'
import { SkillCatalog } from './skill-catalog.js'
import { directoryListing, pageOf } from './skill-listing.js'
import { keyOfUri } from './skill-path.js'
import { SkillResources } from './skill-resources.js'
import type { FoundSkill } from './skill-scan.js'
import { Visibility } from './visibility.js'

export interface SkillsOptions {
  /** The folder of the skills, or several: each folder in it that has a SKILL.md is a skill. */
  folder: string | readonly string[]
  /** Whether a caller sees a skill, or a promise of that (default: everybody). Others cannot read its files either. */
  visible?: (
    skill: Pick<Skill, 'uri' | 'frontmatter'>,
    caller: Caller,
  ) => boolean | Promise<boolean>
  /** Caching hints of the files (default: not cacheable); `skills/list` and `skills/get` have those of lists. */
  cache?: Partial<CacheHint>
}

const OPTIONS = namesOf<SkillsOptions>()('folder visible cache')

/** How often a request is tried while files change. */
const ATTEMPTS = 3

/** The extension for skills: serves the skills in a folder. Throws if one of them is not valid. */
export function skills(options: SkillsOptions): Extension {
  const { folders, visible, cache } = checkOptions(options)
  const catalog = new SkillCatalog(folders)
  const visibility = new Visibility(visible)
  let serving: InternalServer | undefined
  let resources: SkillResources | undefined
  return extension({
    id: SKILLS,
    settings: { directoryRead: true },
    clientDeclares: false,
    methods: {
      'skills/list': {
        cache: 'list',
        serve: (params, call) => list(params, call, catalog, visibility, serverOf(serving)),
      },
      'skills/get': {
        cache: 'list',
        serve: async (params, call) => ({ skill: await get(params, call, catalog, visibility) }),
      },
      'resources/directory/read': {
        cache: 'list',
        serve: (params, call) =>
          readDirectory(params, call, catalog, visibility, serverOf(serving)),
      },
    },
    start(server: Server, report: (entry: LogEntry) => void) {
      if (resources !== undefined && serving !== server)
        throw new TypeError(
          'skills() belongs to another server; call skills() once for each server',
        )
      serving = checkServer(server)
      resources ??= new SkillResources(serving, catalog, visibility, cache)
      resources.start(report)
    },
    stop: () => catalog.stop(),
  })
}

function checkOptions(options: SkillsOptions) {
  if (typeof options !== 'object' || options === null)
    throw new TypeError('skills: pass an object with a "folder"')
  checkNames('skills', options, OPTIONS)
  const { folder, visible, cache = {} } = options
  const folders: readonly unknown[] = Array.isArray(folder) ? folder : [folder]
  const given = folders.filter((each): each is string => typeof each === 'string' && each !== '')
  if (given.length === 0 || given.length < folders.length)
    throw new TypeError('skills: "folder" must be the path of a folder, or a list of them')
  if (visible !== undefined && typeof visible !== 'function')
    throw new TypeError('skills: "visible" must be a function of a skill and a caller')
  return {
    folders: given,
    visible,
    cache: hintOf(cache, (problem) => new TypeError(`skills: ${problem}`)),
  }
}

function serverOf(serving: InternalServer | undefined): InternalServer {
  if (serving === undefined) throw new Error('The server is not being served')
  return serving
}

async function list(
  { cursor }: Params,
  { client, signal }: Call,
  catalog: SkillCatalog,
  visibility: Visibility,
  server: InternalServer,
): Promise<object> {
  const { skills } = await catalog.current()
  const seen = await visibility.filter(client, skills.values())
  const entry = async (skill: FoundSkill) => {
    signal.throwIfAborted()
    return (await catalog.entryOf(skill)) ?? (await entryByUri(skill.uri, catalog))
  }
  return pageOf('skills', seen, entry, { method: 'skills/list', cursor, server })
}

/** The entry of a skill that has changed; undefined if it is gone, or keeps changing. */
async function entryByUri(uri: string, catalog: SkillCatalog): Promise<Skill | undefined> {
  for (let attempt = 1; attempt < ATTEMPTS; attempt++) {
    const { skills } = await catalog.current()
    const skill = skills.get(keyOfUri(uri) ?? '')
    if (skill === undefined) return undefined
    const entry = await catalog.entryOf(skill)
    if (entry !== undefined) return entry
  }
  return undefined
}

async function get(
  { uri }: Params,
  { client }: Call,
  catalog: SkillCatalog,
  visibility: Visibility,
): Promise<Skill> {
  const { skills } = await catalog.current()
  const skill = skills.get(keyOfUri(uri) ?? '')
  if (skill === undefined || !(await visibility.sees(client, skill)))
    throw new RpcError(
      INVALID_PARAMS,
      `No skill is served at ${truncateJson(uri)}; list the skills`,
    )
  const entry = (await catalog.entryOf(skill)) ?? (await entryByUri(skill.uri, catalog))
  if (entry !== undefined) return entry
  throw new RpcError(INTERNAL_ERROR, `The files of ${skill.uri} are being changed; try again later`)
}

async function readDirectory(
  { uri, cursor }: Params,
  { client }: Call,
  catalog: SkillCatalog,
  visibility: Visibility,
  server: InternalServer,
): Promise<object> {
  const { directories } = await catalog.current()
  const directory = directories.get(keyOfUri(uri) ?? '')
  if (directory === undefined || !(await visibility.seesAny(client, directory.skills)))
    throw new RpcError(INVALID_PARAMS, `${truncateJson(uri)} is not a directory resource`)
  const children = []
  for (const child of directory.children.values())
    if (!visibility.varies || (await visibility.seesAny(client, child.skills))) children.push(child)
  const listing = directoryListing(client.revision)
  return pageOf('resources', children, listing, {
    method: `resources/directory/read ${directory.uri}`,
    cursor,
    server,
  })
}

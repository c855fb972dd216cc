import type { ClientExtension, ExtensionConnection } from '../../client/extension.js'
import { withCode } from '../../jsonrpc/errors.js'
import { callHook, ignore } from '../../jsonrpc/hook.js'
import { isObject } from '../../jsonrpc/message.js'
import { truncateJson } from '../../jsonrpc/truncate.js'
import { checkNames, namesOf } from '../../schema/names.js'
import { type SkillHost, type SkillReadOptions, ClientSkill } from './client-skill.js'
import { type Skill, SKILLS } from './skill.js'
import { SkillCache } from './skill-cache.js'
import { EntryError, checkEntry } from './skill-entry.js'
import { pagesOf } from './skill-pages.js'

export interface ClientSkillsOptions {
  /** Whether `dynamic` skills, whose contents cannot be verified, can be loaded (default false). */
  dynamic?: boolean
  /** Bytes of verified files that are kept in memory (default 16 MiB). */
  cacheBytes?: number
  /** Called with each skill that `client.skills()` leaves out, and why: its entry is not valid, or exceeds the limits. */
  onRefused?: (refused: { readonly uri: string; readonly reason: string }) => void
}

const OPTIONS = namesOf<ClientSkillsOptions>()('dynamic cacheBytes onRefused')

/** The members that a client gets. */
export interface SkillMembers {
  /** The skills that the server lists; none if it does not have the extension. No file is read. */
  skills(options?: SkillReadOptions): Promise<ClientSkill[]>
  /** A skill by the URI of its SKILL.md, also one that is not listed. No file is read. */
  skill(uri: string, options?: SkillReadOptions): Promise<ClientSkill>
}

/** The extension for clients: skills are listed, and their files verified when they are read. */
export function clientSkills(options: ClientSkillsOptions = {}): ClientExtension<SkillMembers> {
  checkNames('clientSkills', options, OPTIONS)
  const { cacheBytes = 0, dynamic = false } = options
  if (!(typeof cacheBytes === 'number' && cacheBytes >= 0))
    throw new TypeError('clientSkills: "cacheBytes" must be a number of bytes')
  if (typeof dynamic !== 'boolean')
    throw new TypeError('clientSkills: "dynamic" must be true or false')
  return {
    id: SKILLS,
    connected(connection) {
      const own = new ServerSkills(connection, options)
      return {
        skills: (given) => own.list(given),
        skill: (uri, given) => own.get(uri, given),
      }
    },
  }
}

/** The skills of the server of one client. */
class ServerSkills {
  readonly #onRefused: ClientSkillsOptions['onRefused']
  readonly #host: SkillHost

  constructor(
    connection: ExtensionConnection,
    { dynamic = false, cacheBytes = 16 * 1024 * 1024, onRefused }: ClientSkillsOptions,
  ) {
    this.#onRefused = onRefused
    this.#host = { dynamic, cache: new SkillCache(cacheBytes), connection }
  }

  async list({ signal }: SkillReadOptions = {}): Promise<ClientSkill[]> {
    const { connection } = this.#host
    if (connection.settings === undefined) return []
    const found = new Map<string, Skill>()
    const twice = new Set<string>()
    for (const item of await pagesOf(connection, 'skills/list', 'skills', {}, signal))
      try {
        const entry = checkEntry(item)
        if (found.has(entry.uri)) twice.add(entry.uri)
        else found.set(entry.uri, entry)
      } catch (error) {
        if (!(error instanceof EntryError)) throw error
        this.#refused(isObject(item) ? item['uri'] : undefined, error.message)
      }
    for (const uri of twice) {
      found.delete(uri)
      this.#refused(uri, 'it is listed twice')
    }
    return Array.from(found.values(), (entry) => new ClientSkill(entry, this.#host))
  }

  async get(uri: string, { signal }: SkillReadOptions = {}): Promise<ClientSkill> {
    const { connection } = this.#host
    if (connection.settings === undefined)
      throw withCode('NOT_SUPPORTED', new Error('The server does not have skills'))
    const options = signal === undefined ? {} : { signal }
    const { skill } = await connection.request('skills/get', { uri }, options)
    const entry = checked(skill, uri)
    if (entry.uri !== uri)
      throw withCode(
        'INVALID_RESPONSE',
        new TypeError(`skills/get returned ${truncateJson(entry.uri)}, another skill`),
      )
    return new ClientSkill(entry, this.#host)
  }

  #refused(uri: unknown, reason: string): void {
    const onRefused = this.#onRefused
    if (onRefused === undefined) return
    const refused = { uri: typeof uri === 'string' ? uri : '', reason }
    callHook(() => onRefused(refused), ignore)
  }
}

function checked(entry: unknown, uri: string): Skill {
  try {
    return checkEntry(entry)
  } catch (error) {
    if (!(error instanceof EntryError)) throw error
    throw withCode(
      'SKILL_REFUSED',
      new Error(`${truncateJson(uri)} is not loaded: ${error.message}`),
    )
  }
}

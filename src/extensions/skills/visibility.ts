import { markHandled } from '../../jsonrpc/hook.js'
import type { Caller } from '../../server/call.js'
import type { Skill } from './skill.js'
import type { FoundSkill } from './skill-scan.js'

type Visible = (
  skill: Pick<Skill, 'uri' | 'frontmatter'>,
  caller: Caller,
) => boolean | Promise<boolean>

/** Who sees which skills. */
export class Visibility {
  readonly #visible: Visible | undefined

  constructor(visible: Visible | undefined) {
    this.#visible = visible
  }

  get varies(): boolean {
    return this.#visible !== undefined
  }

  async sees(caller: Caller, { uri, frontmatter }: FoundSkill): Promise<boolean> {
    if (this.#visible === undefined) return true
    const seen: unknown = await this.#visible({ uri, frontmatter }, caller)
    return seen === true
  }

  async seesAny(caller: Caller, skills: Iterable<FoundSkill>): Promise<boolean> {
    for (const skill of skills) if (await this.sees(caller, skill)) return true
    return false
  }

  async filter(caller: Caller, skills: Iterable<FoundSkill>): Promise<FoundSkill[]> {
    const all = [...skills]
    if (this.#visible === undefined) return all
    const seen = await Promise.all(all.map((skill) => markHandled(this.sees(caller, skill))))
    return all.filter((_, index) => seen[index])
  }
}

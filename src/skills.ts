export {
  type ClientSkillsOptions,
  type SkillMembers,
  clientSkills,
} from './extensions/skills/client-skills.js'
export {
  type ClientSkill,
  type LoadedSkill,
  type SkillContents,
  type SkillFolderItem,
  type SkillReadOptions,
} from './extensions/skills/client-skill.js'
export type { FrontMatter, Skill, SkillResource } from './extensions/skills/skill.js'
export { type SkillsOptions, skills } from './extensions/skills/skills.js'

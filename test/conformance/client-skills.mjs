// The client in the suite's scenarios for the Skills extension.

const SKILL = 'skill://pdf-processing/SKILL.md'

/** What the client does in each scenario, and the extension that it uses. */
export async function skillsScenario(scenario) {
  if (!scenario.startsWith('sep-2640-client-')) return undefined
  const { clientSkills } = await import(new URL('../../dist/skills.js', import.meta.url).href)
  return { extensions: [clientSkills()], run: SCENARIOS[scenario] }
}

const SCENARIOS = {
  async 'sep-2640-client-no-prefetch'(client) {
    const [skill] = await client.skills()
    if (skill?.uri !== SKILL) throw new Error('The skill is not listed')
  },
  'sep-2640-client-verify-digest': (client) => refuse(client, /digest/),
  'sep-2640-client-verify-size': (client) => refuse(client, /bytes/),
  'sep-2640-client-verify-frontmatter': (client) => refuse(client, /front matter/),
}

/** Uses the skill as a host would: loads it, then reads a file of it. The first must fail. */
async function refuse(client, reason) {
  const [skill] = await client.skills()
  try {
    const loaded = await skill.load()
    await loaded.read('references/FORMS.md')
  } catch (error) {
    if (error.code === 'SKILL_MISMATCH' && reason.test(error.message)) return
    throw error
  }
  throw new Error('The skill was loaded')
}

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, memory } from '../../src/client.js'
import { extension } from '../../src/extensions.js'
import { createServer } from '../../src/index.js'
import { clientSkills, skills } from '../../src/skills.js'
import { type Hook, type Row, outcome, row } from './modes.js'

const URI = 'skill://it/SKILL.md'

/** Sends a request to a server whose `visible` fails; cancels it if there is no response. */
async function ask(visible: Hook, method: string, params: Readonly<Record<string, unknown>> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'ccmcp-hooks-'))
  mkdirSync(join(folder, 'it'))
  writeFileSync(join(folder, 'it/SKILL.md'), '---\nname: it\ndescription: It\n---\n')
  writeFileSync(join(folder, 'it/file.md'), 'It')
  try {
    const server = createServer({
      name: 'hooks',
      version: '1',
      extensions: [skills({ folder, visible })],
    })
    await using client = await connect(memory(server))
    const controller = new AbortController()
    const result = client.request(method, params, { signal: controller.signal })
    const came = await outcome(result, visible, () => controller.abort(new Error('given up')))
    await client.request('server/discover')
    return came
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const INTERNAL = 'error -32603'
const GIVEN_UP = 'Error: given up'

export const SKILLS_ROWS: readonly Row[] = [
  row('visible of skills, skills/list', INTERNAL, GIVEN_UP, (hook) => ask(hook, 'skills/list')),
  row('visible of skills, skills/get', INTERNAL, GIVEN_UP, (hook) =>
    ask(hook, 'skills/get', { uri: URI }),
  ),
  row('visible of skills, resources/directory/read', INTERNAL, GIVEN_UP, (hook) =>
    ask(hook, 'resources/directory/read', { uri: 'skill://it' }),
  ),
  row('visible of skills, resources/read', INTERNAL, GIVEN_UP, (hook) =>
    ask(hook, 'resources/read', { uri: 'skill://it/file.md' }),
  ),
  row('onRefused of clientSkills', 'result', 'result', async (onRefused) => {
    const server = createServer({
      name: 'hooks',
      version: '1',
      extensions: [
        extension({
          id: 'io.modelcontextprotocol/skills',
          methods: { 'skills/list': { serve: () => ({ skills: [7] }) } },
        }),
      ],
    })
    const extensions = [clientSkills({ onRefused })] as const
    await using client = await connect(memory(server), { extensions })
    return await outcome(client.skills(), onRefused)
  }),
]

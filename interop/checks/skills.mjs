// Skills: the official client reads those of our server, and our client those of the official server.
import assert from 'node:assert/strict'
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/client'
import { SkillVerificationError, SkillsClient } from '@modelcontextprotocol/client/ext/skills'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { connect, stdio } from '../../dist/client.js'
import { clientSkills } from '../../dist/skills.js'
import { rejection, script, until } from '../harness.mjs'

const SKILLS = fileURLToPath(new URL('../../test/conformance/skills', import.meta.url))
const PDF = 'skill://pdf-processing/SKILL.md'
const URIS = ['skill://acme/billing/refunds/SKILL.md', 'skill://git-workflow/SKILL.md', PDF]

export function skillsChecks(versions) {
  const client = versions['@modelcontextprotocol/client']
  const server = versions['@modelcontextprotocol/server']
  return [
    [`skills SDK ${client} client, stateless`, (t) => theirs(t, { mode: 'auto' })],
    [`skills SDK ${client} client, handshake`, (t) => theirs(t, undefined)],
    [`skills SDK ${server} server, stateless`, (t) => ours(t, '2026-07-28')],
    [`skills SDK ${server} server, handshake`, (t) => ours(t, '2025-11-25')],
  ]
}

/** A copy of the skills, which may be changed; with names that are encoded in different ways. */
function folderOf(t) {
  const folder = t.path('skills')
  cpSync(SKILLS, folder, { recursive: true })
  writeFileSync(join(folder, 'pdf-processing', 'Q&A (1) 100%, [new] Grüße.md'), 'Why?\n')
  writeFileSync(join(folder, 'pdf-processing', 'logo.bin'), Uint8Array.of(0, 1, 254, 255))
  return folder
}

/** The official client with our server. */
async function theirs(t, versionNegotiation) {
  const folder = folderOf(t)
  const client = new Client({ name: 'stranger', version: '1.0.0' }, { versionNegotiation })
  t.defer(() => client.close())
  const command = { command: process.execPath, env: t.env, stderr: 'pipe' }
  await t.must('connect', () =>
    client.connect(new StdioClientTransport({ ...command, args: script('skills.mjs', folder) })),
  )
  const skills = new SkillsClient(client)
  const { skills: listed, invalid } = await t.must('list', () => skills.list())
  await t.step('declared', async () => {
    assert.equal(skills.supported, true)
    assert.equal(skills.directoryRead, true)
  })
  await t.step('entries', async () => {
    assert.deepEqual(invalid, [])
    assert.deepEqual(
      listed.map(({ uri }) => uri),
      URIS,
    )
    for (const { uri } of listed) {
      const { skill } = await skills.get(uri)
      assert.deepEqual(
        skill,
        listed.find((each) => each.uri === uri),
      )
    }
  })
  await t.step('every file verified', async () => {
    for (const skill of listed)
      for (const { uri } of skill.resources)
        assert.equal((await skills.read(skill, uri)).verified, true, uri)
  })
  await t.step('directories', async () => {
    const { resources } = await skills.readDirectory('skill://pdf-processing')
    assert.deepEqual(
      resources.filter(({ mimeType }) => mimeType === 'inode/directory').map(({ name }) => name),
      ['references', 'templates'],
    )
    assert.equal((await rejection(skills.readDirectory(PDF))).code, -32602)
  })
  await t.step('unknown', async () =>
    assert.equal((await rejection(skills.get('skill://none/SKILL.md'))).code, -32602),
  )
  await t.step('changed', async () => {
    const pdf = listed.find(({ uri }) => uri === PDF)
    writeFileSync(join(folder, 'pdf-processing', 'references', 'FORMS.md'), '# Other forms\n')
    const error = await rejection(skills.read(pdf, 'references/FORMS.md'))
    assert.ok(error instanceof SkillVerificationError, String(error))
    await until(async () => {
      const { skill } = await skills.get(PDF)
      return skill.resources.some(({ size }) => size === '# Other forms\n'.length)
    }, 'the entry is new')
    const { skill } = await skills.get(PDF)
    assert.equal((await skills.read(skill, 'references/FORMS.md')).text, '# Other forms\n')
  })
}

/** Entries without what may differ: how URIs are encoded, and the order of files. */
function plain(skills) {
  return skills.map(({ uri, frontmatter, resources }) => {
    const files = resources.map((each) => ({ ...each, uri: decodeURIComponent(each.uri) }))
    return {
      uri,
      frontmatter,
      files: files.toSorted((one, other) => (one.uri < other.uri ? -1 : 1)),
    }
  })
}

/** Our client with the official server. */
async function ours(t, revision) {
  const folder = folderOf(t)
  const open = async (file) => {
    const target = stdio(process.execPath, script(file, folder), {
      env: { ...process.env, ...t.env },
    })
    const client = await connect(target, {
      extensions: [clientSkills({ cacheBytes: 0 })],
      revision,
    })
    t.defer(() => client.close())
    return client
  }
  const client = await t.must('connect', () => open('servers/sdk-2-skills.mjs'))
  const listed = await t.must('list', () => client.skills())
  await t.step('the same entries as of our server', async () => {
    const own = await open('skills.mjs')
    assert.deepEqual(plain(listed), plain(await own.skills()))
  })
  await t.step('every file verified', async () => {
    for (const skill of listed) {
      const loaded = await skill.load()
      for (const { uri } of skill.resources) assert.equal((await loaded.read(uri)).verified, true)
    }
  })
  await t.step('get', async () => {
    const skill = await client.skill(PDF)
    const loaded = await skill.load()
    assert.match(loaded.body, /^\n# PDF processing/)
    assert.deepEqual(
      (await loaded.folder('templates')).map(({ name, kind }) => `${kind} ${name}`),
      ['file invoice.md', 'directory regional'],
    )
    const names = await loaded.read('Q&A (1) 100%, [new] Grüße.md')
    assert.equal(names.text, 'Why?\n')
  })
  await t.step('unknown', async () =>
    assert.equal((await rejection(client.skill('skill://none/SKILL.md'))).code, -32602),
  )
  await t.step('changed', async () => {
    const loaded = await (await client.skill(URIS[0])).load()
    const file = join(folder, 'acme/billing/refunds/examples/email.md')
    writeFileSync(file, `${readFileSync(file, 'utf8')}P.S.`)
    // It refuses to read what its catalog does not have.
    assert.equal((await rejection(loaded.read('examples/email.md'))).code, -32603)
  })
}

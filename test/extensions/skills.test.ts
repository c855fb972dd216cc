import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type Client, type ConnectOptions, connect, memory } from '../../src/client.js'
import { type ServerOptions, createServer, resource } from '../../src/index.js'
import { newest, revisions } from '../../src/protocol/revisions/index.js'
import { type Skill, type SkillsOptions, skills } from '../../src/skills.js'
import { proves } from '../requirements/proves.js'
import { folderWith, skillText } from './skill-folders.js'

const IDS = revisions.map(({ id }) => id)
const SKILLS = 'io.modelcontextprotocol/skills'
const PNG = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0, 1, 2, 3)

const FILES = {
  'pdf/SKILL.md': skillText('pdf', 'license: MIT\nmetadata:\n  version: "1.0"\n'),
  'pdf/references/FORMS.md': '# Forms\n',
  'pdf/references/Q&A 100%.md': 'Why?\n',
  'pdf/logo.png': PNG,
  'pdf/data.unknown': 'text\n',
  'pdf/blob.unknown': PNG,
  'pdf/.env': 'SECRET=1\n',
  'acme/billing/refunds/SKILL.md': skillText('refunds'),
  'acme/README.md': 'Not part of a skill\n',
  'outer/SKILL.md': skillText('outer'),
  'outer/inner/SKILL.md': skillText('inner'),
  'outer/inner/deep/note.txt': 'note\n',
}

const serverOf = (options: SkillsOptions, more: Partial<ServerOptions> = {}) =>
  createServer({ name: 'x', version: '1', ...more, extensions: [skills(options)] })

async function open(
  options: Partial<SkillsOptions> = {},
  more: Partial<ServerOptions> = {},
  connecting: ConnectOptions = {},
): Promise<Client> {
  const folder = options.folder ?? folderWith(FILES)
  return await connect(memory(serverOf({ folder, ...options }, more)), connecting)
}

const listed = async (client: Client, cursor?: string) =>
  (await client.request('skills/list', cursor === undefined ? {} : { cursor })) as unknown as {
    skills: Skill[]
    nextCursor?: string
    ttlMs?: number
    cacheScope?: string
    resultType?: string
  }
const children = async (client: Client, uri: string) =>
  (
    (await client.request('resources/directory/read', { uri })) as unknown as {
      resources: object[]
    }
  ).resources
const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: { code: number; message: string }) => error,
  )

describe.each(IDS)('skills of a folder, in %s', (revision) => {
  it('are declared, with resources, and served to a client that has not declared them', async () => {
    proves('skills.methods', 'skills.resources-capability', 'skills.scheme', 'skills.list')
    await using client = await open({}, {}, { revision })
    expect(client.capabilities).toMatchObject({
      resources: {},
      extensions: { [SKILLS]: { directoryRead: true } },
    })
    const { skills: found, ...rest } = await listed(client)
    expect(found.map(({ uri }) => uri)).toEqual([
      'skill://acme/billing/refunds/SKILL.md',
      'skill://outer/SKILL.md',
      'skill://outer/inner/SKILL.md',
      'skill://pdf/SKILL.md',
    ])
    // Only the newest revision has these members.
    if (revision === newest.id)
      expect(rest).toMatchObject({ resultType: 'complete', ttlMs: 0, cacheScope: 'private' })
    else expect(rest).toEqual({})
  })

  it('have the front matter, and all files with digest and size', async () => {
    proves('skills.front-matter', 'skills.path-name', 'skills.resources', 'skills.get')
    const folder = folderWith(FILES)
    await using client = await open({ folder }, {}, { revision })
    const { skill } = (await client.request('skills/get', {
      uri: 'skill://pdf/SKILL.md',
    })) as unknown as { skill: Skill }
    expect(skill.frontmatter).toEqual({
      name: 'pdf',
      description: 'What pdf is for',
      license: 'MIT',
      metadata: { version: '1.0' },
    })
    const files = ['SKILL.md', 'blob.unknown', 'data.unknown', 'logo.png', 'references/FORMS.md']
    const expected = [...files, 'references/Q&A 100%.md'].map((path) => {
      const bytes = readFileSync(join(folder, 'pdf', path))
      const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`
      return {
        uri: `skill://pdf/${path.replace(' 100%', '%20100%25')}`,
        digest,
        size: bytes.length,
      }
    })
    expect(skill.resources).toEqual(expected)
    const { skills: all } = await listed(client)
    expect(all).toContainEqual(skill)
  })

  it('have the files of nested skills among their own', async () => {
    await using client = await open({}, {}, { revision })
    const { skills: found } = await listed(client)
    const urisOf = (uri: string) => {
      const { resources = [] } = found.find((each) => each.uri === uri) ?? {}
      return Array.isArray(resources) ? resources.map((each) => each.uri) : resources
    }
    const inner = ['skill://outer/inner/SKILL.md', 'skill://outer/inner/deep/note.txt']
    expect(urisOf('skill://outer/inner/SKILL.md')).toEqual(inner)
    expect(urisOf('skill://outer/SKILL.md')).toEqual(['skill://outer/SKILL.md', ...inner])
  })

  it('are read as resources: text or bytes, with a MIME type', async () => {
    await using client = await open({}, {}, { revision })
    const read = async (uri: string) => (await client.readResource(uri)).contents[0]
    expect(await read('skill://pdf/SKILL.md')).toMatchObject({
      mimeType: 'text/markdown',
      text: FILES['pdf/SKILL.md'],
    })
    expect(await read('skill://pdf/references/Q&A%20100%25.md')).toMatchObject({ text: 'Why?\n' })
    expect(await read('skill://pdf/logo.png')).toEqual({
      uri: 'skill://pdf/logo.png',
      mimeType: 'image/png',
      blob: Buffer.from(PNG).toString('base64'),
    })
    expect(await read('skill://pdf/data.unknown')).toMatchObject({ mimeType: 'text/plain' })
    expect(await read('skill://pdf/blob.unknown')).toMatchObject({
      mimeType: 'application/octet-stream',
    })
  })

  it('list each SKILL.md, with name and description, and nothing else', async () => {
    proves('skills.metadata')
    await using client = await open({}, {}, { revision })
    const found = []
    for await (const { uri, name, description, mimeType, _meta } of client.resources())
      found.push({ uri, name, description, mimeType, ...(_meta && { _meta }) })
    expect(found).toContainEqual({
      uri: 'skill://acme/billing/refunds/SKILL.md',
      name: 'refunds',
      description: 'What refunds is for',
      mimeType: 'text/markdown',
    })
    expect(found).toHaveLength(4)
  })

  it('have directories, also those above skills', async () => {
    proves('skills.directory')
    await using client = await open({}, {}, { revision })
    expect(await children(client, 'skill://pdf')).toMatchObject([
      { uri: 'skill://pdf/SKILL.md', name: 'pdf', description: 'What pdf is for' },
      { name: 'blob.unknown' },
      { name: 'data.unknown' },
      { name: 'logo.png', mimeType: 'image/png', size: PNG.length },
      { uri: 'skill://pdf/references', name: 'references', mimeType: 'inode/directory' },
    ])
    // README.md is not part of a skill.
    expect(await children(client, 'skill://acme')).toEqual([
      { uri: 'skill://acme/billing', name: 'billing', mimeType: 'inode/directory' },
    ])
    // A prefix of a name is no directory.
    for (const uri of ['skill://pd', 'skill://acm', 'skill://acme/bill', 'skill://pdf/ref'])
      expect(await failure(client.request('resources/directory/read', { uri })), uri).toMatchObject(
        { code: -32602 },
      )
  })

  it('answer −32602 to skills/get of anything else', async () => {
    proves('skills.get', 'skills.errors')
    await using client = await open({}, {}, { revision })
    for (const uri of [
      'skill://none/SKILL.md',
      'skill://pdf',
      'skill://pdf/references/FORMS.md',
      'skill://acme/SKILL.md',
      'skill://pdf/SKILL.md#x',
      'skill://pdf/../pdf/SKILL.md',
      'skill://pdf/%00',
      'skill://pdf/%zz',
      'file:///etc/passwd',
      '',
      7,
      null,
      undefined,
    ])
      expect(await failure(client.request('skills/get', { uri })), String(uri)).toMatchObject({
        code: -32602,
      })
  })

  it('answer −32602 to resources/directory/read of anything else', async () => {
    proves('skills.directory', 'skills.errors')
    await using client = await open({}, {}, { revision })
    for (const uri of ['skill://pdf/', 'skill://pdf/SKILL.md', 'skill://', 'skill://none', 7])
      expect(
        await failure(client.request('resources/directory/read', { uri })),
        String(uri),
      ).toMatchObject({ code: -32602 })
  })

  it('serve no other file, however its URI is written', async () => {
    await using client = await open({}, {}, { revision })
    for (const uri of [
      'skill://pdf/.env',
      'skill://pdf/%2Eenv',
      'skill://pdf/%2e%2e/acme/README.md',
      'skill://pdf/..%2Facme%2FREADME.md',
      'skill://acme/README.md',
      'skill:///etc/passwd',
      'skill://pdf//etc/passwd',
      'skill://pdf/SKILL.md%00.png',
      'skill://pdf/references',
      'skill://pdf/..\\acme\\README.md',
    ]) {
      const { code } = (await failure(client.readResource(uri))) ?? {}
      expect(code, uri).toBe(revision === newest.id ? -32602 : -32002)
    }
  })
})

describe('pages of skills', () => {
  const many = Object.fromEntries(
    Array.from({ length: 25 }, (_, index) => [`s${index}/SKILL.md`, skillText(`s${index}`)]),
  )

  it('follow a cursor, each skill once', async () => {
    await using client = await open({ folder: folderWith(many) }, { pageSize: 10 })
    const uris: string[] = []
    let cursor: string | undefined
    do {
      const page = await listed(client, cursor)
      uris.push(...page.skills.map(({ uri }) => uri))
      expect(page.skills.length).toBeLessThanOrEqual(10)
      cursor = page.nextCursor
    } while (cursor !== undefined)
    expect(new Set(uris).size).toBe(25)
    expect(uris).toHaveLength(25)
  })

  it('end after a megabyte, between two skills', async () => {
    const files: Record<string, string> = {}
    const deep = Array.from({ length: 9 }, () => 'x'.repeat(200)).join('/')
    for (const name of 'abcdefghij') {
      files[`${name}/SKILL.md`] = skillText(name)
      for (let index = 0; index < 64; index++) files[`${name}/${deep}/${index}.md`] = ''
    }
    await using client = await open({ folder: folderWith(files) })
    const first = await listed(client)
    expect(first.nextCursor).toBeDefined()
    const second = await listed(client, first.nextCursor)
    expect(second.nextCursor).toBeUndefined()
    const all = [...first.skills, ...second.skills]
    expect(all.map(({ frontmatter }) => frontmatter.name).join('')).toBe('abcdefghij')
    for (const { resources } of all) expect(resources).toHaveLength(65)
  })

  it('refuse cursors of others', async () => {
    await using client = await open({ folder: folderWith(many) }, { pageSize: 10 })
    const { nextCursor } = await listed(client)
    for (const cursor of ['', 'x', 'A'.repeat(100_000), 7, nextCursor?.slice(1)])
      expect(await failure(client.request('skills/list', { cursor }))).toMatchObject({
        code: -32602,
      })
    // A cursor of skills/list is not one of a directory.
    const params = { uri: 'skill://s1', cursor: nextCursor }
    expect(await failure(client.request('resources/directory/read', params))).toMatchObject({
      code: -32602,
    })
  })
})

describe('several folders', () => {
  it('are one namespace', async () => {
    const one = folderWith({ 'acme/one/SKILL.md': skillText('one') })
    const other = folderWith({ 'acme/two/SKILL.md': skillText('two') })
    await using client = await open({ folder: [one, other] })
    const { skills: found } = await listed(client)
    expect(found.map(({ frontmatter }) => frontmatter.name)).toEqual(['one', 'two'])
    expect(await children(client, 'skill://acme')).toHaveLength(2)
  })

  it('may each be a skill itself', async () => {
    const parent = folderWith({ 'pdf/SKILL.md': skillText('pdf'), 'pdf/a/b.md': 'b' })
    await using client = await open({ folder: join(parent, 'pdf') })
    const { skills: found } = await listed(client)
    expect(found).toMatchObject([{ uri: 'skill://pdf/SKILL.md', resources: { length: 2 } }])
    expect((await client.readResource('skill://pdf/a/b.md')).contents[0]?.text).toBe('b')
  })

  it('may be empty', async () => {
    await using client = await open({ folder: folderWith({}) })
    expect((await listed(client)).skills).toEqual([])
    expect(client.capabilities).toHaveProperty('resources')
  })
})

describe('visible', () => {
  const options = {
    visible: (
      { frontmatter }: Pick<Skill, 'frontmatter'>,
      { principal }: { principal?: { id: string } | undefined },
    ) => Promise.resolve(frontmatter.name !== 'pdf' || principal?.id === 'ada'),
  }

  it('hides a skill, its files and its directories', async () => {
    const server = serverOf(
      { folder: folderWith(FILES), ...options },
      { cache: { ttlMs: 1000, cacheScope: 'public' } },
    )
    await using stranger = await connect(memory(server))
    const page = await listed(stranger)
    expect(page.skills).toHaveLength(3)
    // What depends on the caller is not for shared caches.
    expect(page).toMatchObject({ ttlMs: 1000, cacheScope: 'private' })
    for (const uri of ['skill://pdf/SKILL.md', 'skill://pdf/references/FORMS.md'])
      expect(await failure(stranger.readResource(uri))).toMatchObject({ code: -32602 })
    expect(
      await failure(stranger.request('skills/get', { uri: 'skill://pdf/SKILL.md' })),
    ).toMatchObject({ code: -32602 })
    expect(await failure(children(stranger, 'skill://pdf/references'))).toMatchObject({
      code: -32602,
    })
    const uris = []
    for await (const { uri } of stranger.resources()) uris.push(uri)
    expect(uris).not.toContain('skill://pdf/SKILL.md')

    await using ada = await connect(
      memory(server, { principal: { id: 'ada', scopes: [], claims: {} } }),
    )
    expect((await listed(ada)).skills).toHaveLength(4)
    expect((await ada.readResource('skill://pdf/references/FORMS.md')).contents[0]?.text).toBe(
      '# Forms\n',
    )
  })
})

describe('a server with skills', () => {
  it('keeps public caching hints of lists, and of the files', async () => {
    const cache = { ttlMs: 60_000, cacheScope: 'public' } as const
    await using client = await open({ cache }, { cache })
    expect(await listed(client)).toMatchObject(cache)
    expect(await client.request('skills/get', { uri: 'skill://pdf/SKILL.md' })).toMatchObject(cache)
    expect(await client.request('resources/read', { uri: 'skill://pdf/SKILL.md' })).toMatchObject(
      cache,
    )
  })

  it('serves other resources as well', async () => {
    const other = resource({ uri: 'skill-like://x', read: () => 'other' })
    await using client = await open({}, { resources: [other] })
    expect((await client.readResource('skill-like://x')).contents[0]?.text).toBe('other')
  })

  it('is the only one of its skills()', async () => {
    const extension = skills({ folder: folderWith(FILES) })
    const made = () => createServer({ name: 'x', version: '1', extensions: [extension] })
    await using first = await connect(memory(made()))
    await expect(connect(memory(made()))).rejects.toThrow('skills() belongs to another server')
    expect((await listed(first)).skills).toHaveLength(4)
  })

  it('can be served again after it was stopped', async () => {
    const server = serverOf({ folder: folderWith(FILES) })
    for (let times = 0; times < 2; times++) {
      await using client = await connect(memory(server))
      expect((await listed(client)).skills).toHaveLength(4)
    }
  })
})

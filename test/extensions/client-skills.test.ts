import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { writeFileSync } from 'node:fs'
import { describe, expect, it, vi } from 'vitest'
import { type Target, connect, memory } from '../../src/client.js'
import { extension } from '../../src/extensions.js'
import { createServer, resource } from '../../src/index.js'
import { revisions } from '../../src/protocol/revisions/index.js'
import {
  type SkillMembers,
  type ClientSkillsOptions,
  type Skill,
  clientSkills,
  skills,
} from '../../src/skills.js'
import { proves } from '../requirements/proves.js'
import { folderWith, skillText } from './skill-folders.js'

const ID = 'io.modelcontextprotocol/skills'
const URI = 'skill://pdf/SKILL.md'
const FORMS = 'skill://pdf/references/FORMS.md'
const BODY = '# PDF\n\nSee [forms](references/FORMS.md#top).\n'
const MARKDOWN = `---\nname: pdf\ndescription: Fill forms\nallowed-tools: Bash\nmetadata:\n  version: "1"\n---\n${BODY}`
const FRONT_MATTER = {
  name: 'pdf',
  description: 'Fill forms',
  'allowed-tools': 'Bash',
  metadata: { version: '1' },
}

const resourceOf = (uri: string, contents: string | Uint8Array) => ({
  uri,
  digest: `sha256:${createHash('sha256').update(contents).digest('hex')}`,
  size: Buffer.byteLength(contents),
})
const FILES: Record<string, string> = {
  [URI]: MARKDOWN,
  [FORMS]: '# Forms\n',
  'skill://pdf/Q&A%20100%25.md': 'Why?\n',
}
const ENTRY: Skill = {
  uri: URI,
  frontmatter: FRONT_MATTER,
  resources: Object.entries(FILES).map(([uri, text]) => resourceOf(uri, text)),
}

interface Script {
  list?: object | ((params: Record<string, unknown>) => object)
  get?: object
  settings?: object
  /** Contents of `resources/read` by URI. */
  files?: Record<string, unknown>
  directory?: (uri: unknown) => object
  declared?: boolean
}

/** A server that sends what it is told, and the requests that it has received. */
function scripted(script: Script) {
  const {
    list = { skills: [ENTRY] },
    get = { skill: ENTRY },
    files = FILES,
    declared = true,
  } = script
  const requests: string[] = []
  const server = createServer({
    name: 'x',
    version: '1',
    resources: [
      resource({
        uri: 'skill://{+path}',
        anyPath: true,
        read: () => undefined,
      }),
    ],
    extensions: [
      extension({
        id: declared ? ID : 'com.example/other',
        clientDeclares: false,
        settings: { ...script.settings },
        methods: {
          'skills/list': {
            serve: (params) =>
              typeof list === 'function' ? (list as (given: object) => object)(params) : list,
          },
          'skills/get': { serve: () => get },
          'resources/directory/read': {
            serve: ({ uri }) => script.directory?.(uri) ?? { resources: [] },
          },
        },
      }),
    ],
  })
  server.use((call, next) => {
    const { method, params = {} } = call as unknown as { method: string; params?: { uri?: string } } // as middleware gets them
    requests.push(params.uri === undefined ? method : `${method} ${params.uri}`)
    if (method !== 'resources/read' || params.uri === undefined) return next()
    const contents = files[params.uri]
    return typeof contents === 'string'
      ? { contents: [{ uri: params.uri, text: contents }] }
      : (contents as Record<string, unknown>) // as the test says
  })
  return { target: memory(server), requests }
}

async function use<Value>(
  target: Target,
  run: (found: SkillMembers) => Promise<Value>,
  options: ClientSkillsOptions = {},
  revision?: string,
): Promise<Value> {
  await using client = await connect(target, {
    extensions: [clientSkills(options)],
    ...(revision && { revision }),
  })
  return await run(client)
}

/** Loads the skill of a scripted server. */
async function load(script: Script, options: ClientSkillsOptions = {}) {
  const { target, requests } = scripted(script)
  try {
    const loaded = await use(target, async (found) => (await found.skills())[0]?.load(), options)
    return { loaded, reads: requests.filter((each) => each.startsWith('resources/read')) }
  } catch (error) {
    const { code, message } = error as { code: string; message: string } // as ours are
    return { code, message, reads: requests.filter((each) => each.startsWith('resources/read')) }
  }
}

describe('a client', () => {
  it('lists skills and reads no file', async () => {
    proves('skills.lazy')
    const { target, requests } = scripted({})
    const [skill] = await use(target, (found) => found.skills())
    expect(skill).toMatchObject({
      uri: URI,
      name: 'pdf',
      description: 'Fill forms',
      frontmatter: FRONT_MATTER,
    })
    expect(requests.filter((each) => each.startsWith('resources/'))).toEqual([])
  })

  it('gets one skill by its URI', async () => {
    proves('skills.unlisted')
    const { target, requests } = scripted({ list: { skills: [] } })
    const skill = await use(target, (found) => found.skill(URI))
    expect(skill.resources).toEqual(ENTRY.resources)
    expect(requests).toContain(`skills/get ${URI}`)
  })

  it('loads a skill, and reads its files by path, link and URI', async () => {
    proves('skills.lazy', 'skills.directory-held')
    const { target, requests } = scripted({})
    await use(target, async (found) => {
      const [skill] = await found.skills()
      const loaded = await skill?.load()
      expect(loaded).toMatchObject({ text: MARKDOWN, body: BODY, verified: true })
      for (const reference of [
        'references/FORMS.md',
        './references/FORMS.md#top',
        'references/../references/FORMS.md',
        FORMS,
      ])
        expect(await loaded?.read(reference)).toMatchObject({
          uri: FORMS,
          path: 'references/FORMS.md',
          text: '# Forms\n',
          verified: true,
        })
      for (const reference of ['Q&A 100%.md', 'Q&A%20100%25.md', 'Q%26A%20100%25.md'])
        expect((await loaded?.read(reference))?.text).toBe('Why?\n')
      expect(await loaded?.folder()).toEqual([
        { name: 'SKILL.md', path: 'SKILL.md', kind: 'file' },
        { name: 'references', path: 'references', kind: 'directory' },
        { name: 'Q&A 100%.md', path: 'Q&A 100%.md', kind: 'file' },
      ])
      expect(await loaded?.folder('references/')).toMatchObject([{ path: 'references/FORMS.md' }])
      await expect(loaded?.folder('nothing')).rejects.toMatchObject({ code: 'SKILL_MISMATCH' })
    })
    // Each file once: what was verified is kept.
    expect(requests.filter((each) => each.startsWith('resources/'))).toHaveLength(3)
  })

  it('reads only files of the entry', async () => {
    proves('skills.listed-files', 'skills.own-server', 'skills.no-network')
    const { target, requests } = scripted({})
    await use(target, async (found) => {
      const loaded = await (await found.skills())[0]?.load()
      const sent = requests.length
      for (const reference of [
        'secret.md',
        '../other/SKILL.md',
        '/etc/passwd',
        'file:///etc/passwd',
        'skill://other/SKILL.md',
        'https://example.com/',
        '',
        '.',
        '..',
        'references',
        `${FORMS}?x`,
        '%2e%2e/x',
        'references/%00',
      ])
        await expect(loaded?.read(reference), reference).rejects.toMatchObject({
          code: 'SKILL_MISMATCH',
        })
      expect(requests).toHaveLength(sent)
    })
  })

  it('reads files anew when their digest changes, and keeps a number of bytes', async () => {
    const files = { ...FILES }
    const changed = resourceOf(FORMS, '# Forms, changed\n')
    const entry = {
      ...ENTRY,
      resources: [...(ENTRY.resources as []), changed].filter((each, index) => index !== 1),
    }
    const { target, requests } = scripted({ files, get: { skill: entry } })
    await use(target, async (found) => {
      const loaded = await (await found.skills())[0]?.load()
      const first = await loaded?.read('references/FORMS.md')
      first?.bytes.fill(0)
      expect((await loaded?.read('references/FORMS.md'))?.text).toBe('# Forms\n')
      files[FORMS] = '# Forms, changed\n'
      const again = await (await found.skill(URI)).load()
      expect((await again.read('references/FORMS.md')).text).toBe('# Forms, changed\n')
    })
    expect(requests.filter((each) => each === `resources/read ${FORMS}`)).toHaveLength(2)
    const uncached = scripted({})
    await use(
      uncached.target,
      async (found) => {
        const loaded = await (await found.skills())[0]?.load()
        await loaded?.read('references/FORMS.md')
        await loaded?.read('references/FORMS.md')
      },
      { cacheBytes: 0 },
    )
    expect(uncached.requests.filter((each) => each === `resources/read ${FORMS}`)).toHaveLength(2)
  })

  it('binds approval to the set of files', async () => {
    const fingerprint = (entry: object) =>
      use(scripted({ list: { skills: [entry] } }).target, async (found) =>
        (await found.skills())[0]?.fingerprint(),
      )
    const resources = ENTRY.resources as Exclude<Skill['resources'], 'dynamic'>
    const same = await fingerprint(ENTRY)
    expect(same).toMatch(/^sha256:/)
    expect(await fingerprint({ ...ENTRY, resources: resources.toReversed() })).toBe(same)
    expect(await fingerprint({ ...ENTRY, resources: resources.slice(0, 2) })).not.toBe(same)
    expect(await fingerprint({ ...ENTRY, resources: 'dynamic' })).toBeUndefined()
  })
})

describe('a skill is not loaded', () => {
  const other = (text: string) => ({ ...FILES, [URI]: text })
  /** The entry with the digest and size of another SKILL.md. */
  const entryOf = (text: string, frontmatter: unknown = FRONT_MATTER) => ({
    list: { skills: [{ uri: URI, frontmatter, resources: [resourceOf(URI, text)] }] },
    files: other(text),
  })

  it.each<[what: string, script: Script, message: RegExp]>([
    [
      'with another digest',
      { files: other(MARKDOWN.replace('forms', 'FORMS')) },
      /digest is not that of the entry/,
    ],
    [
      'with another size',
      { files: other(`${MARKDOWN}more`) },
      /it has \d+ bytes; the entry says \d+/,
    ],
    [
      'with another description',
      entryOf(MARKDOWN, { ...FRONT_MATTER, description: 'Harmless' }),
      /differs from the entry in \["description"\]/,
    ],
    [
      'with a field that the entry lacks',
      entryOf(MARKDOWN, { name: 'pdf', description: 'Fill forms' }),
      /\["allowed-tools","metadata"\]/,
    ],
    [
      'without a field of the entry',
      entryOf(MARKDOWN, { ...FRONT_MATTER, license: 'MIT' }),
      /\["license"\]/,
    ],
    [
      'with another nested field',
      entryOf(MARKDOWN, { ...FRONT_MATTER, metadata: { version: 1 } }),
      /\["metadata\.version"\]/,
    ],
    [
      'with a list for a map',
      entryOf(MARKDOWN, { ...FRONT_MATTER, metadata: ['1'] }),
      /\["metadata"\]/,
    ],
    ['without front matter', entryOf('# PDF\n'), /front matter cannot be read/],
    [
      'with duplicate fields',
      entryOf(MARKDOWN.replace('allowed-tools', 'name: pdf\nallowed-tools')),
      /is defined twice/,
    ],
    [
      'without contents',
      { files: { ...FILES, [URI]: { contents: [] } } },
      /neither "text" nor "blob"/,
    ],
    [
      'with wrong Base64',
      { files: { ...FILES, [URI]: { contents: [{ uri: URI, blob: '*' }] } } },
      /not Base64/,
    ],
    [
      'that is dynamic',
      { list: { skills: [{ ...ENTRY, resources: 'dynamic' }] } },
      /is dynamic: its contents cannot be verified/,
    ],
  ])('%s', async (what, script, message) => {
    proves('skills.verify', 'skills.verify-front-matter')
    const { code, message: said, reads } = await load(script)
    expect(said).toMatch(message)
    expect(code).toBe(what === 'that is dynamic' ? 'SKILL_REFUSED' : 'SKILL_MISMATCH')
    expect(reads.length).toBeLessThanOrEqual(1)
  })

  it('as text or as bytes alike', async () => {
    const blob = Buffer.from(MARKDOWN).toString('base64')
    const { loaded } = await load({
      files: { ...FILES, [URI]: { contents: [{ uri: URI, blob }] } },
    })
    expect(loaded?.body).toBe(BODY)
    const bytes = Uint8Array.of(0x2d, 0x2d, 0x2d, 0xff)
    const contents = [{ uri: URI, blob: Buffer.from(bytes).toString('base64') }]
    const { message } = await load({
      list: { skills: [{ ...ENTRY, resources: [resourceOf(URI, bytes)] }] },
      files: { [URI]: { contents } },
    })
    expect(message).toMatch(/it is not UTF-8/)
  })
})

describe('an entry is refused', () => {
  const file = resourceOf(URI, MARKDOWN)
  const many = (count: number, size = 0) =>
    Array.from({ length: count }, (_, index) => ({
      ...file,
      uri: index === 0 ? URI : `skill://pdf/${index}`,
      size,
    }))

  it.each<[what: string, entry: unknown, reason: RegExp]>([
    ['that is no object', 7, /its "uri" is undefined/],
    ['without a URI', { ...ENTRY, uri: undefined }, /its "uri" is undefined/],
    ['of another file', { ...ENTRY, uri: 'skill://pdf/README.md' }, /must end with \/SKILL\.md/],
    ['without a folder', { ...ENTRY, uri: 'skill:///SKILL.md' }, /must end with/],
    ['with a query', { ...ENTRY, uri: 'skill://pdf?x/SKILL.md' }, /must end with/],
    ['without front matter', { ...ENTRY, frontmatter: null }, /no "frontmatter"/],
    [
      'with another name',
      { ...ENTRY, frontmatter: { ...FRONT_MATTER, name: 'doc' } },
      /the folder is "pdf"/,
    ],
    [
      'without a description',
      { ...ENTRY, frontmatter: { name: 'pdf' } },
      /"description" is missing/,
    ],
    ['without resources', { ...ENTRY, resources: undefined }, /neither a list nor "dynamic"/],
    ['with another word', { ...ENTRY, resources: 'static' }, /neither a list nor "dynamic"/],
    ['without SKILL.md', { ...ENTRY, resources: [] }, /lack SKILL\.md/],
    ['with a file twice', { ...ENTRY, resources: [file, file] }, /is listed twice/],
    [
      'with a file in two spellings',
      { ...ENTRY, resources: [file, { ...file, uri: 'skill://pdf/SKILL%2Emd' }] },
      /is listed twice/,
    ],
    [
      'with a file elsewhere',
      { ...ENTRY, resources: [file, { ...file, uri: 'skill://other/x' }] },
      /not a file within the skill/,
    ],
    [
      'with a path out of it',
      { ...ENTRY, resources: [file, { ...file, uri: 'skill://pdf/%2e%2e/x' }] },
      /not a file within/,
    ],
    [
      'with an encoded slash',
      { ...ENTRY, resources: [file, { ...file, uri: 'skill://pdf/a%2Fb' }] },
      /not a file within/,
    ],
    [
      'with a digest of another kind',
      { ...ENTRY, resources: [{ ...file, digest: 'md5:00' }] },
      /must be "sha256:"/,
    ],
    [
      'with capitals in a digest',
      { ...ENTRY, resources: [{ ...file, digest: file.digest.toUpperCase() }] },
      /must be "sha256:"/,
    ],
    [
      'without a size',
      { ...ENTRY, resources: [{ ...file, size: undefined }] },
      /no "uri", "digest" and "size"/,
    ],
    [
      'with a negative size',
      { ...ENTRY, resources: [{ ...file, size: -1 }] },
      /no "uri", "digest" and "size"/,
    ],
    ['with 513 files', { ...ENTRY, resources: many(513) }, /more than 512 files/],
    [
      'with more than 16 MiB',
      { ...ENTRY, resources: many(2, 8 * 1024 * 1024 + 1) },
      /more than 16777216 bytes/,
    ],
  ])('%s', async (_, entry, reason) => {
    proves('skills.invalid-entries', 'skills.limits-told')
    const refused: { uri: string; reason: string }[] = []
    const good = { ...ENTRY, uri: 'skill://other/pdf/SKILL.md', resources: 'dynamic' as const }
    const { target } = scripted({ list: { skills: [entry, good] }, get: { skill: entry } })
    const found = await use(
      target,
      async (each) => {
        await expect(each.skill(URI)).rejects.toMatchObject({ code: 'SKILL_REFUSED' })
        return each.skills()
      },
      { onRefused: (each) => void refused.push(each) },
    )
    expect(found.map(({ uri }) => uri)).toEqual([good.uri])
    expect(refused).toMatchObject([{ reason: expect.stringMatching(reason) as string }])
  })

  it('that has the URI of another', async () => {
    const refused: string[] = []
    const { target } = scripted({
      list: { skills: [ENTRY, { ...ENTRY, frontmatter: { ...FRONT_MATTER, description: 'x' } }] },
    })
    const options = { onRefused: ({ reason }: { reason: string }) => void refused.push(reason) }
    expect(await use(target, (found) => found.skills(), options)).toEqual([])
    expect(refused).toEqual(['it is listed twice'])
  })

  it('not at the limits, nor under another scheme', async () => {
    proves('skills.limits-of-hosts')
    const uri = 'github://owner/repo/skills/pdf/SKILL.md'
    const entries = [
      { ...ENTRY, resources: many(512, 32 * 1024) },
      { ...ENTRY, uri, resources: [{ ...file, uri }] },
    ]
    expect(
      await use(scripted({ list: { skills: entries } }).target, (found) => found.skills()),
    ).toHaveLength(2)
  })

  it('if it is of another skill', async () => {
    const { target } = scripted({})
    await expect(
      use(target, (found) => found.skill('skill://other/SKILL.md')),
    ).rejects.toMatchObject({ code: 'INVALID_RESPONSE' })
  })
})

describe('a dynamic skill', () => {
  const dynamic = { ...ENTRY, resources: 'dynamic' as const }

  it('is loaded if that is allowed; its front matter is compared', async () => {
    const { loaded } = await load({ list: { skills: [dynamic] } }, { dynamic: true })
    expect(loaded).toMatchObject({ verified: false, body: BODY })
    const files = { ...FILES, [URI]: MARKDOWN.replace('Fill', 'Steal') }
    expect(await load({ list: { skills: [dynamic] }, files }, { dynamic: true })).toMatchObject({
      code: 'SKILL_MISMATCH',
    })
  })

  it('has files within its directory only, and 16 MiB of them', async () => {
    const files = { ...FILES, 'skill://pdf/large.txt': 'x'.repeat(9 * 1024 * 1024) }
    const { target, requests } = scripted({ list: { skills: [dynamic] }, files })
    await use(
      target,
      async (found) => {
        const loaded = await (await found.skills())[0]?.load()
        expect(await loaded?.read('references/FORMS.md')).toMatchObject({
          text: '# Forms\n',
          verified: false,
        })
        const sent = requests.length
        for (const reference of ['../x', 'skill://other/x', '/etc/passwd', ''])
          await expect(loaded?.read(reference)).rejects.toMatchObject({ code: 'SKILL_MISMATCH' })
        expect(requests).toHaveLength(sent)
        await loaded?.read('large.txt')
        await expect(loaded?.read('large.txt')).rejects.toMatchObject({ code: 'SKILL_REFUSED' })
      },
      { dynamic: true },
    )
  })

  it('has the directories that the server lists, if it can', async () => {
    proves('skills.client-directory-read')
    const directory = (uri: unknown) => ({
      resources: [
        { uri: `${String(uri)}/a.md`, name: 'a.md' },
        { uri: `${String(uri)}/sub`, name: 'sub', mimeType: 'inode/directory' },
        { uri: 'skill://other/x.md', name: 'x.md' },
        7,
      ],
    })
    const script = { list: { skills: [dynamic] }, directory, settings: { directoryRead: true } }
    const items = (given: Script) =>
      use(
        scripted(given).target,
        async (found) => {
          const loaded = await (await found.skills())[0]?.load()
          return [await loaded?.folder(), await loaded?.folder('references')]
        },
        { dynamic: true },
      )
    expect(await items(script)).toEqual([
      [
        { name: 'a.md', path: 'a.md', kind: 'file' },
        { name: 'sub', path: 'sub', kind: 'directory' },
      ],
      [
        { name: 'a.md', path: 'references/a.md', kind: 'file' },
        { name: 'sub', path: 'references/sub', kind: 'directory' },
      ],
    ])
    await expect(items({ ...script, settings: {} })).rejects.toMatchObject({
      code: 'NOT_SUPPORTED',
    })
  })
})

describe('a server', () => {
  it('that has not declared skills is not asked for them', async () => {
    const { target, requests } = scripted({ declared: false })
    await use(target, async (found) => {
      expect(await found.skills()).toEqual([])
      await expect(found.skill(URI)).rejects.toMatchObject({ code: 'NOT_SUPPORTED' })
    })
    expect(requests.filter((each) => each.startsWith('skills/'))).toEqual([])
  })

  it.each<[what: string, list: Script['list'], code: string]>([
    ['no list', {}, 'INVALID_RESPONSE'],
    ['the same cursor again', { skills: [], nextCursor: 'x' }, 'INVALID_RESPONSE'],
    ['a cursor that is no string', { skills: [], nextCursor: 7 }, 'INVALID_RESPONSE'],
    [
      'pages without end',
      ({ cursor = '' }) => ({
        skills: [],
        nextCursor: `${String(cursor).slice(0, 1)}${Math.random()}`,
      }),
      'TOO_LARGE',
    ],
    [
      'pages that are too large',
      ({ cursor = '' }) => ({ skills: ['x'.repeat(10_000_000)], nextCursor: `${String(cursor)}x` }),
      'TOO_LARGE',
    ],
  ])('that sends %s gets an error', async (_, list = {}, code) => {
    await expect(use(scripted({ list }).target, (found) => found.skills())).rejects.toMatchObject({
      code,
    })
  })
})

describe.each(revisions.map(({ id }) => id))('our client with our server, in %s', (revision) => {
  it('loads every skill, until its files change', async () => {
    proves('skills.directory-held')
    const folder = folderWith({
      'pdf/SKILL.md': skillText('pdf', 'allowed-tools: Bash\nmetadata:\n  a: "1.0"\n'),
      'pdf/references/FORMS & more.md': 'forms',
      'pdf/nested/SKILL.md': skillText('nested'),
      'pdf/logo.bin': Uint8Array.of(0, 1, 255),
    })
    const server = createServer({ name: 'x', version: '1', extensions: [skills({ folder })] })
    await use(
      memory(server),
      async (found) => {
        for (const skill of await found.skills()) {
          const loaded = await skill.load()
          expect(loaded.body).toBe(`\n# ${skill.name}\n`)
          const list = skill.resources === 'dynamic' ? [] : skill.resources
          for (const { uri, size } of list)
            expect((await loaded.read(uri)).bytes).toHaveLength(size)
        }
        const skill = await found.skill('skill://pdf/SKILL.md')
        const loaded = await skill.load()
        writeFileSync(join(folder, 'pdf/new.md'), 'new')
        await expect(loaded.read('new.md')).rejects.toMatchObject({ code: 'SKILL_MISMATCH' })
        writeFileSync(join(folder, 'pdf/SKILL.md'), skillText('pdf'))
        // The server learns of the change from the file system, a moment later.
        await vi.waitFor(async () => await (await found.skill(skill.uri)).load(), 60_000)
      },
      { cacheBytes: 0 },
      revision,
    )
  })
})

describe('clientSkills', () => {
  it('refuses wrong options', () => {
    for (const options of [{ dynamic: 1 }, { cacheBytes: -1 }, { cacheBytes: '1' }, { unknown: 1 }])
      expect(() => clientSkills(options as ClientSkillsOptions)).toThrow(TypeError)
  })
})

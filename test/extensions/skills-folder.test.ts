import { execFileSync } from 'node:child_process'
import fs, {
  linkSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { createServer as createSocket } from 'node:net'
import { join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { fc } from '../fast-check.js'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { connect, memory } from '../../src/client.js'
import { SkillFolder } from '../../src/extensions/skills/skill-folder.js'
import { createServer } from '../../src/index.js'
import { type SkillsOptions, clientSkills, skills } from '../../src/skills.js'
import { proves } from '../requirements/proves.js'
import { type Files, folderWith, skillText, write } from './skill-folders.js'

afterEach(() => {
  vi.restoreAllMocks()
})

/** What skills() says of a folder. */
function problemOf(folder: string | string[]): { code?: string; message: string } {
  try {
    skills({ folder })
    return { message: 'none' }
  } catch (error) {
    return error as { code?: string; message: string } // what it throws
  }
}
const problemWith = (files: Files) => problemOf(folderWith(files))
const pdf = (frontMatter: string) => ({ 'pdf/SKILL.md': `---\n${frontMatter}\n---\n` })

describe('a folder that is not valid', () => {
  it.each<[what: string, files: Files, message: RegExp]>([
    [
      'without front matter',
      { 'pdf/SKILL.md': '# PDF\n' },
      /pdf\/SKILL\.md: line 1: the file must begin/,
    ],
    [
      'without the end of front matter',
      { 'pdf/SKILL.md': '---\nname: pdf\n' },
      /must end with a line "---"/,
    ],
    [
      'without a name',
      pdf('description: x'),
      /"name" is undefined; it must be the name of the folder, "pdf"/,
    ],
    [
      'with another name',
      pdf('name: doc\ndescription: x'),
      /"name" is "doc", but the folder is "pdf"; give both/,
    ],
    ['with a number as name', pdf('name: 7\ndescription: x'), /"name" is 7; it must be the name/],
    [
      'with capitals in the name',
      { 'Pdf/SKILL.md': skillText('Pdf') },
      /use 1 to 64 lowercase letters/,
    ],
    ['with two hyphens', { 'a--b/SKILL.md': skillText('a--b') }, /use 1 to 64 lowercase letters/],
    [
      'with a long name',
      { [`${'a'.repeat(65)}/SKILL.md`]: skillText('a'.repeat(65)) },
      /use 1 to 64/,
    ],
    [
      'without a description',
      pdf('name: pdf'),
      /"description" is missing; it must be a text of 1 to 1024 characters/,
    ],
    [
      'with an empty description',
      pdf('name: pdf\ndescription: " "'),
      /"description" has \d+ characters; it must be/,
    ],
    [
      'with a long description',
      pdf(`name: pdf\ndescription: ${'é'.repeat(1025)}`),
      /"description" has \d+ characters; it must be/,
    ],
    [
      'with a long compatibility',
      pdf(`name: pdf\ndescription: x\ncompatibility: ${'x'.repeat(501)}`),
      /"compatibility" must be/,
    ],
    [
      'with a number in metadata',
      pdf('name: pdf\ndescription: x\nmetadata:\n  version: 2'),
      /values must be texts, so put it in quotes/,
    ],
    [
      'with a list as metadata',
      pdf('name: pdf\ndescription: x\nmetadata: [a]'),
      /"metadata" must be a map/,
    ],
    [
      'with reserved metadata',
      pdf('name: pdf\ndescription: x\nmetadata: {io.modelcontextprotocol/x: z}'),
      /is reserved/,
    ],
    [
      'that is not UTF-8',
      { 'pdf/SKILL.md': Uint8Array.of(0x2d, 0x2d, 0x2d, 10, 0xff) },
      /not UTF-8/,
    ],
    [
      'with another spelling of SKILL.md',
      { 'pdf/skill.md': skillText('pdf') },
      /must be a file with the name SKILL\.md/,
    ],
    [
      'with a space in the first segment',
      { 'My Team/pdf/SKILL.md': skillText('pdf') },
      /the folder "My Team" is the first segment of a URI/,
    ],
    [
      'with a long path',
      {
        'pdf/SKILL.md': skillText('pdf'),
        [`pdf/${Array.from({ length: 9 }, () => '%'.repeat(200)).join('/')}/x`]: '',
      },
      /its URI has more than 2048 characters/,
    ],
  ])('%s is refused', (_, files, message) => {
    proves('skills.format', 'skills.path-name', 'skills.prefix')
    const { code, message: said } = problemWith(files)
    expect(said).toMatch(message)
    expect(code).toBe('INVALID_SKILL')
  })

  it('is refused with all of its problems', () => {
    const { message } = problemWith({
      'a/SKILL.md': 'x',
      'b/SKILL.md': 'x',
      'c/SKILL.md': skillText('c'),
    })
    expect(message.split('\n')).toHaveLength(2)
  })

  it('that does not exist is refused', () => {
    expect(problemOf('/nonexistent/skills')).toMatchObject({
      code: 'INVALID_SKILL',
      message:
        'skills: /nonexistent/skills: it cannot be opened as a folder (ENOENT); check the path',
    })
    expect(problemOf(join(folderWith({ file: '' }), 'file')).message).toMatch(/it is not a folder/)
  })

  it.each<[what: string, options: unknown]>([
    ['nothing', undefined],
    ['no folder', {}],
    ['an empty folder', { folder: '' }],
    ['no folders', { folder: [] }],
    ['a number', { folder: 7 }],
    ['a URL of the web', { folder: new URL('https://example.com/') }],
    ['a number among folders', { folder: ['/tmp', 7] }],
    ['an unknown option', { folder: '/tmp', folders: [] }],
    ['a wrong cache', { folder: '/tmp', cache: { ttlMs: -1 } }],
    ['a wrong visible', { folder: '/tmp', visible: true }],
  ])('%s is refused as options', (_, options) => {
    expect(() => skills(options as SkillsOptions)).toThrow(TypeError)
  })

  it('with the same skill twice is refused', () => {
    const files = { 'pdf/SKILL.md': skillText('pdf') }
    expect(problemOf([folderWith(files), folderWith(files)]).message).toMatch(
      /another folder has the same skill/,
    )
  })

  it('with a skill within a skill of another folder is refused', () => {
    const outer = folderWith({ 'pdf/SKILL.md': skillText('pdf') })
    const inner = folderWith({ 'pdf/forms/SKILL.md': skillText('forms') })
    expect(problemOf([outer, inner]).message).toMatch(
      /the skill "pdf" of another folder would enclose it/,
    )
  })

  it('with a skill whose name begins with that of another folder is served', async () => {
    const folder = ['pdf', 'pdf-forms'].map((name) =>
      folderWith({ [`${name}/SKILL.md`]: skillText(name) }),
    )
    const server = createServer({ name: 's', version: '1', extensions: [skills({ folder })] })
    const client = await connect(memory(server), { extensions: [clientSkills()] })
    expect((await client.skills()).map(({ uri }) => uri)).toEqual([
      'skill://pdf-forms/SKILL.md',
      'skill://pdf/SKILL.md',
    ])
    await client.close()
  })
})

describe('the limits of a skill', () => {
  const filesOf = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`pdf/${index}.md`, '']))

  it('are 512 files, with those of nested skills', () => {
    proves('skills.limits-of-servers')
    const skill = { 'pdf/SKILL.md': skillText('pdf'), 'pdf/nested/SKILL.md': skillText('nested') }
    expect(problemWith({ ...skill, ...filesOf(510) }).message).toBe('none')
    expect(problemWith({ ...skill, ...filesOf(511) }).message).toMatch(
      /pdf: the skill has more than 512 files/,
    )
  })

  it('are 16 MiB', () => {
    proves('skills.limits-of-servers')
    const text = skillText('pdf')
    const folder = folderWith({ 'pdf/SKILL.md': text, 'pdf/large.bin': '' })
    truncateSync(join(folder, 'pdf/large.bin'), 16 * 1024 * 1024 - text.length)
    expect(problemOf(folder).message).toBe('none')
    truncateSync(join(folder, 'pdf/large.bin'), 16 * 1024 * 1024 - text.length + 1)
    expect(problemOf(folder).message).toMatch(/pdf: the skill has more than 16777216 bytes/)
    // Not even read: it has no blocks.
    truncateSync(join(folder, 'pdf/large.bin'), 2 ** 40)
    expect(problemOf(folder).message).toMatch(/more than 16777216 bytes/)
  })

  it('are 32 folders in depth, and 20000 entries', () => {
    const deep = Array.from({ length: 40 }, () => 'd').join('/')
    expect(
      problemWith({ 'pdf/SKILL.md': skillText('pdf'), [`pdf/${deep}/x`]: '' }).message,
    ).toMatch(/more than 32 folders deep/)
    const folder = folderWith({})
    const names = Array.from({ length: 20_001 }, (_, index) => `f${index}`)
    const found = vi
      .spyOn(fs, 'readdirSync')
      .mockReturnValueOnce(names.map((name) => ({ name })) as never)
    vi.spyOn(fs, 'lstatSync').mockReturnValue(fs.statSync(folder, { bigint: true }))
    expect(problemOf(folder).message).toMatch(/more than 20000 files and folders/)
    expect(found).toHaveBeenCalledOnce()
  })
})

const SECRET = 'secret of another folder'
const readOf = async (folder: string | URL, uri: string) => {
  const server = createServer({ name: 'x', version: '1', extensions: [skills({ folder })] })
  await using client = await connect(memory(server))
  return (await client.readResource(uri)).contents[0]?.text
}

describe.skipIf(process.platform === 'win32')('links and special files', () => {
  const outside = () => folderWith({ 'secret.md': SECRET, 'dir/secret.md': SECRET })
  const inside = () =>
    folderWith({ 'pdf/SKILL.md': skillText('pdf'), 'pdf/a.md': 'a', 'shared/b.md': 'b' })

  it.each([
    ['a file', (away: string) => join(away, 'secret.md')],
    ['a folder', (away: string) => join(away, 'dir')],
    ['a relative path', () => '../../../etc/passwd'],
    ['nothing', () => 'nowhere'],
    ['itself', () => 'link'],
    ['a device', () => '/dev/zero'],
  ])('a link out of the folder, to %s, is refused', (_, target) => {
    const folder = inside()
    symlinkSync(target(outside()), join(folder, 'pdf/link'))
    expect(problemOf(folder).message).toMatch(
      /pdf\/link: it is a symbolic link that leads out of the folder, or nowhere/,
    )
  })

  it('a link out of the folder is refused as a skill', () => {
    const folder = inside()
    symlinkSync(folderWith({ 'x/SKILL.md': skillText('x') }), join(folder, 'x'))
    expect(problemOf(folder).message).toMatch(/x: it is a symbolic link that leads out/)
  })

  it('links within the folder are followed', async () => {
    const folder = inside()
    symlinkSync('../shared', join(folder, 'pdf/shared'))
    symlinkSync('a.md', join(folder, 'pdf/again.md'))
    expect(await readOf(folder, 'skill://pdf/shared/b.md')).toBe('b')
    expect(await readOf(folder, 'skill://pdf/again.md')).toBe('a')
  })

  it('a link to a folder that it is in is refused', () => {
    const folder = inside()
    symlinkSync('..', join(folder, 'pdf/up'))
    expect(problemOf(folder).message).toMatch(/pdf\/up: it is a link to a folder that it is in/)
  })

  it('the folder may be a URL, or relative to the working directory', async () => {
    const folder = inside()
    expect(await readOf(pathToFileURL(folder), 'skill://pdf/a.md')).toBe('a')
    expect(await readOf(relative(process.cwd(), folder), 'skill://pdf/a.md')).toBe('a')
  })

  it('the folder itself may be a link', async () => {
    const link = join(folderWith({}), 'current')
    symlinkSync(inside(), link)
    expect(await readOf(link, 'skill://pdf/a.md')).toBe('a')
  })

  it('pipes and sockets are refused', async () => {
    const folder = inside()
    execFileSync('mkfifo', [join(folder, 'pdf/pipe')])
    expect(problemOf(folder).message).toMatch(/pdf\/pipe: it is neither a file nor a folder/)
    rmSync(join(folder, 'pdf/pipe'))
    const socket = createSocket()
    await new Promise<void>((resolve) => socket.listen(join(folder, 'pdf/socket'), resolve))
    expect(problemOf(folder).message).toMatch(/pdf\/socket: it is neither a file nor a folder/)
    await new Promise((resolve) => socket.close(resolve))
  })

  it('a folder that cannot be read is refused', () => {
    const folder = inside()
    mkdirSync(join(folder, 'pdf/closed'))
    const readdir = fs.readdirSync
    vi.spyOn(fs, 'readdirSync').mockImplementation(((path: string, options: object) => {
      const found = readdir(path, options)
      if (found.length > 0) return found
      throw Object.assign(new Error('denied'), { code: 'EACCES' })
    }) as never)
    expect(problemOf(folder).message).toMatch(/pdf\/closed: it cannot be read \(EACCES\)/)
  })

  it('a name with a backslash is refused', () => {
    const folder = inside()
    writeFileSync(join(folder, 'pdf', 'a\\b.md'), '')
    expect(problemOf(folder).message).toMatch(/its name has a backslash; rename it/)
  })

  it('every other name can be read by the URI that is listed', async () => {
    const folder = inside()
    const names = new Set(
      fc.sample(fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }), 200),
    )
    for (const name of [
      'a,b',
      '[x]',
      '{y}',
      '%41',
      '%zz',
      '~',
      "it's",
      'a b',
      '#1?',
      'é',
      '\u{1F600}',
      '\n',
      'C:',
      '*.*',
    ])
      names.add(name)
    for (const name of names) {
      const bad = /[/\\\0\p{Surrogate}\uFFFD]/u.test(name) || name.startsWith('.')
      if (!bad && name !== 'SKILL.md') writeFileSync(join(folder, 'pdf', name), name)
    }
    const server = createServer({ name: 'x', version: '1', extensions: [skills({ folder })] })
    await using client = await connect(memory(server), { extensions: [clientSkills()] })
    const [skill] = await client.skills()
    const loaded = await skill?.load()
    const { resources = [] } = skill ?? {}
    expect(resources.length).toBeGreaterThan(100)
    for (const { uri } of resources === 'dynamic' ? [] : resources) {
      const { path, text } = (await loaded?.read(uri)) ?? {}
      if (path !== 'SKILL.md' && path !== 'a.md') expect(text).toBe(path)
    }
  })

  it('a name that is not UTF-8 is refused', () => {
    const folder = inside()
    const name = Buffer.concat([Buffer.from(join(folder, 'pdf/')), Buffer.from([0xff, 0x2e])])
    writeFileSync(name, '')
    expect(readdirSync(join(folder, 'pdf'))).toHaveLength(3)
    expect(problemOf(folder).message).toMatch(/its name is not valid UTF-8/)
  })
})

describe.each(['descriptor', 'path'] as const)('confinement by %s', (resolution) => {
  const linux = process.platform === 'linux' || resolution === 'path'

  it.skipIf(!linux)('does not follow a folder or file that has become a link', async () => {
    const away = folderWith({ 'a.md': SECRET, 'SKILL.md': SECRET })
    const folder = folderWith({ 'pdf/sub/a.md': 'a' })
    const below = new SkillFolder(folder, resolution)
    const read = async () =>
      new TextDecoder().decode((await below.read(['pdf', 'sub', 'a.md'], 100)).bytes)
    expect(await read()).toBe('a')
    renameSync(join(folder, 'pdf/sub'), join(folder, 'pdf/old'))
    symlinkSync(away, join(folder, 'pdf/sub'))
    await expect(read()).rejects.toThrow('It is gone')
    expect(() => below.readSync(['pdf', 'sub', 'a.md'], 100)).toThrow('It is gone')
    expect(() => below.list(['pdf', 'sub'])).toThrow()
    rmSync(join(folder, 'pdf/sub'))
    mkdirSync(join(folder, 'pdf/sub'))
    symlinkSync(join(away, 'a.md'), join(folder, 'pdf/sub/a.md'))
    await expect(read()).rejects.toThrow('It is gone')
  })

  it.skipIf(!linux)('never reads outside while folders are exchanged', async () => {
    const away = folderWith({ 'a.md': SECRET })
    const folder = folderWith({ 'sub/a.md': 'inside' })
    symlinkSync(away, join(folder, 'link'))
    const below = new SkillFolder(folder, resolution)
    const open = fs.openSync
    const results = new Set<string>()
    let calls = 0
    // Exchanges the folder and the link before each second system call that opens something.
    vi.spyOn(fs, 'openSync').mockImplementation((...given: Parameters<typeof open>) => {
      if (calls++ % 2 === 0) {
        renameSync(join(folder, 'sub'), join(folder, 'other'))
        renameSync(join(folder, 'link'), join(folder, 'sub'))
        renameSync(join(folder, 'other'), join(folder, 'link'))
      }
      return open(...given)
    })
    for (let times = 0; times < 50; times++)
      try {
        results.add(new TextDecoder().decode((await below.read(['sub', 'a.md'], 100)).bytes))
      } catch (error) {
        results.add((error as Error).message)
      }
    expect([...results].join()).not.toContain(SECRET)
    expect(results.size).toBeGreaterThan(0)
  })

  it.skipIf(!linux)(
    'refuses a file that changes, grows or is replaced while it is read',
    async () => {
      const folder = folderWith({ 'a.md': 'a'.repeat(100) })
      const below = new SkillFolder(folder, resolution)
      await expect(below.read(['a.md'], 50)).rejects.toThrow('more than 50 bytes')
      const fstat = fs.fstatSync
      const spy = vi
        .spyOn(fs, 'fstatSync')
        .mockImplementationOnce((...given: Parameters<typeof fstat>) => {
          const stat = fstat(...given)
          writeFileSync(join(folder, 'a.md'), 'b'.repeat(1000))
          return stat
        })
      await expect(below.read(['a.md'], 5000)).rejects.toThrow('has changed while it was read')
      expect(spy).toHaveBeenCalled()
      spy.mockRestore()
      rmSync(join(folder, 'a.md'))
      execFileSync('mkfifo', [join(folder, 'a.md')])
      await expect(below.read(['a.md'], 5000)).rejects.toThrow('no longer a file')
      rmSync(join(folder, 'a.md'))
      mkdirSync(join(folder, 'a.md'))
      await expect(below.read(['a.md'], 5000)).rejects.toThrow()
    },
  )
})

describe('hard links', () => {
  it('are files like others', async () => {
    const folder = folderWith({ 'pdf/SKILL.md': skillText('pdf') })
    write(folder, { 'pdf/a.md': 'a' })
    linkSync(join(folder, 'pdf/a.md'), join(folder, 'pdf/b.md'))
    expect(await readOf(folder, 'skill://pdf/b.md')).toBe('a')
  })
})

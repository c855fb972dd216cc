import {
  lchownSync,
  linkSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { rootsAt } from '../../src/bundled/file-tools.js'
import { Files } from '../../src/bundled/files.js'
import type { RootList } from '../../src/bundled/roots.js'
import { temporaryFolder } from './folder.js'

const folder = temporaryFolder()
const SECRET = 'the secret of the outside'
const linux = process.platform === 'linux'
const resolutions = linux ? (['descriptors', 'realpath'] as const) : (['realpath'] as const)

let count = 0
/** Creates a directory with files, given by path and content. */
function tree(files: Readonly<Record<string, string>>): string {
  const top = join(folder, `tree-${++count}`)
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(top, path)), { recursive: true })
    writeFileSync(join(top, path), content)
  }
  return top
}
const rootsOf = (first: string, ...others: string[]): RootList =>
  rootsAt([first, ...others], () => {})
const namesIn = async (files: Files, path: string) =>
  (await files.list(path)).entries.map(({ name }) => name)

describe.each(resolutions)('several roots, %s', (resolution) => {
  const filesAt = (first: string, ...others: string[]) =>
    new Files(rootsOf(first, ...others), { resolution })

  it('are selected by absolute paths; relative paths start at the first', async () => {
    const top = tree({ 'one/a': '1', 'two/a': '2', 'three/a': '3', 'outside/a': SECRET })
    const files = filesAt(join(top, 'one'), join(top, 'two'), join(top, 'three'))
    expect(await files.read('a')).toBe('1')
    expect(await files.read(join(top, 'one/a'))).toBe('1')
    expect(await files.read(join(top, 'two/./a'))).toBe('2')
    await files.write(join(top, 'three/new'), 'written')
    expect(readFileSync(join(top, 'three/new'), 'utf8')).toBe('written')
    await files.write('new', 'first')
    expect(existsSync(join(top, 'one/new'))).toBe(true)
    expect(await namesIn(files, join(top, 'two'))).toEqual(['a'])
    expect(await namesIn(files, '.')).toEqual(['a', 'new'])
    for (const path of [
      join(top, 'outside/a'),
      top,
      `${top}/twos/a`,
      `${top}/one/../outside/a`,
      '/',
      '/etc/passwd',
      'two/a',
    ]) {
      await expect(files.read(path)).rejects.toThrow(/outside of|"\.\."|does not exist/)
      await expect(files.write(path, 'x')).rejects.toThrow(/outside of|"\.\."|does not exist/)
      await expect(files.list(path)).rejects.toThrow(/outside of|"\.\."|does not exist/)
    }
  })

  it('are listed in the error for a path outside; a single root is not disclosed', async () => {
    const top = tree({ 'one/a': '1', 'two/a': '2' })
    const [one, two] = [join(top, 'one'), join(top, 'two')]
    await expect(filesAt(one, two).read('/etc/passwd')).rejects.toThrow(
      `"/etc/passwd" is outside of the directories of this server: "${one}", "${two}"`,
    )
    const alone = filesAt(one)
    for (const path of ['/etc/passwd', 'nope', '../x']) {
      const { message } = await alone.read(path).then(
        () => new Error('it was read'),
        (error: Error) => error,
      )
      expect(message).not.toContain(top)
    }
  })

  it('may be linked to each other, but not to the outside', async () => {
    const top = tree({
      'one/a': '1',
      'two/deep/a': '2',
      'outside/a': SECRET,
      'outside/deep/a': SECRET,
    })
    const link = (target: string, name: string) => symlinkSync(target, join(top, 'one', name))
    link(join(top, 'two/deep/a'), 'absolute')
    link('../two/deep', 'relative')
    link('../../' + top.slice(folder.length + 1) + '/two/deep/a', 'far')
    link('../two/../two/deep/a', 'twice')
    link('../two/deep/../../one/a', 'there-and-back')
    link('../outside/a', 'out')
    link('../outside/../two/deep/a', 'through-the-outside')
    link('..', 'above')
    link('../two', 'two')
    const files = filesAt(join(top, 'one'), join(top, 'two'))
    for (const path of ['absolute', 'relative/a', 'far', 'twice', 'two/deep/a'])
      expect(await files.read(path)).toBe('2')
    expect(await files.read('there-and-back')).toBe('1')
    expect(await namesIn(files, 'relative')).toEqual(['a'])
    await files.write('absolute', 'changed')
    expect(readFileSync(join(top, 'two/deep/a'), 'utf8')).toBe('changed')
    for (const path of ['out', 'above', 'above/outside/a', 'two/../outside/a']) {
      await expect(files.read(path)).rejects.toThrow(/is outside of the allowed|"\.\."/)
      await expect(files.list(path)).rejects.toThrow(/is outside of the allowed|"\.\."/)
    }
    // Nothing outside is accessed; resolved by the system, it is the same path.
    if (resolution === 'descriptors')
      await expect(files.read('through-the-outside')).rejects.toThrow('is outside of the allowed')
    const types = Object.fromEntries(
      (await files.list('.')).entries.map(({ name, type }) => [name, type]),
    )
    expect(types).toMatchObject({ relative: 'D', two: 'D', above: 'F', out: 'F', absolute: 'F' })
  })

  it('may be nested, in any order, and given by links', async () => {
    const top = tree({ 'outer/a': 'outer', 'outer/x/inner/a': 'inner', 'outside/a': SECRET })
    const [outer, inner] = [join(top, 'outer'), join(top, 'outer/x/inner')]
    symlinkSync('../../a', join(inner, 'up'))
    symlinkSync(inner, join(top, 'alias'))
    const first = filesAt(inner, outer)
    expect(await first.read('a')).toBe('inner')
    expect(await first.read(join(outer, 'a'))).toBe('outer')
    expect(await first.read(join(inner, 'a'))).toBe('inner')
    expect(await first.read('up')).toBe('outer')
    const second = filesAt(outer, inner, outer)
    expect(await second.read('a')).toBe('outer')
    expect(await second.read('x/inner/a')).toBe('inner')
    expect(await second.read(join(inner, 'a'))).toBe('inner')
    const byLink = filesAt(join(top, 'alias'), outer)
    expect(await byLink.read('a')).toBe('inner')
    expect(await byLink.read(join(top, 'alias/a'))).toBe('inner')
    expect(await byLink.read(join(inner, 'a'))).toBe('inner')
    await expect(filesAt(inner).read('up')).rejects.toThrow('is outside of the allowed')
  })

  it('are not escaped when a nested root is replaced by a link', async () => {
    const top = tree({ 'outer/x/inner/a': 'inner', 'outside/inner/a': SECRET })
    const files = filesAt(join(top, 'outer/x/inner'), join(top, 'outer'))
    renameSync(join(top, 'outer/x'), join(top, 'outer/y'))
    symlinkSync(join(top, 'outside'), join(top, 'outer/x'))
    for (const path of ['a', join(top, 'outer/x/inner/a')]) {
      await expect(files.read(path)).rejects.toThrow('is outside of the allowed')
      await expect(files.write(path, 'x')).rejects.toThrow('is outside of the allowed')
    }
    await expect(files.list('.')).rejects.toThrow('is outside of the allowed')
    expect(readFileSync(join(top, 'outside/inner/a'), 'utf8')).toBe(SECRET)
  })

  it('stay usable when one of them is removed', async () => {
    const top = tree({ 'one/a': '1', 'two/a': '2' })
    const files = filesAt(join(top, 'one'), join(top, 'two'))
    rmSync(join(top, 'two'), { recursive: true })
    await expect(files.read(join(top, 'two/a'))).rejects.toThrow('does not exist')
    await expect(files.list(join(top, 'two'))).rejects.toThrow('does not exist')
    expect(await files.read('a')).toBe('1')
  })
})

describe.runIf(linux && process.getuid?.() === 0)('in a sticky world-writable directory', () => {
  it('links of other users are not followed, as with fs.protected_symlinks', async () => {
    const top = tree({ 'work/mine': 'mine', 'shared/x': 'x' })
    const [work, shared] = [join(top, 'work'), join(top, 'shared')]
    chmodSync(shared, 0o1777)
    for (const name of ['theirs', 'own', 'plain'])
      symlinkSync(join(work, 'mine'), join(shared, name))
    symlinkSync(work, join(shared, 'folder'))
    for (const name of ['theirs', 'folder']) lchownSync(join(shared, name), 12345, 12345)
    const files = new Files(rootsOf(work, shared))
    expect(await files.read(join(shared, 'own'))).toBe('mine')
    for (const path of [join(shared, 'theirs'), join(shared, 'folder/mine')]) {
      await expect(files.read(path)).rejects.toThrow(
        'goes through a symbolic link that another user created in a shared directory',
      )
      await expect(files.write(path, 'x')).rejects.toThrow('another user')
    }
    expect(readFileSync(join(work, 'mine'), 'utf8')).toBe('mine')
    // In other directories the owner of a link does not matter.
    chmodSync(shared, 0o755)
    expect(await files.read(join(shared, 'theirs'))).toBe('mine')
  })
})

describe('default roots', () => {
  afterEach(() => vi.unstubAllEnvs())
  const warnings: string[] = []
  const byDefault = () =>
    rootsAt(undefined, (message) => warnings.push(message)).map(({ given }) => given)

  it('are the working directory and the temporary directory of the system', () => {
    vi.stubEnv('TMPDIR', folder)
    expect(byDefault()).toEqual([process.cwd(), folder])
  })
  it.runIf(linux)('omit a missing temporary directory with a warning', () => {
    vi.stubEnv('TMPDIR', join(folder, 'nope'))
    expect(byDefault()).toEqual([process.cwd()])
    expect(warnings).toEqual([
      expect.stringContaining(
        '/nope", cannot be accessed; the file tools are limited to the working directory',
      ),
    ])
  })
  it.each([
    ['the same', '.'],
    ['above the working directory', '..'],
    ['beneath the working directory', 'sub'],
  ])('%s is the same root', async (_, temporary) => {
    const top = tree({ 'work/a': 'A', 'work/sub/b': 'B' })
    const work = join(top, 'work')
    const files = new Files(rootsOf(work, join(work, temporary)))
    expect(await files.read('a')).toBe('A')
    expect(await files.read(join(work, 'a'))).toBe('A')
    expect(await files.read('sub/b')).toBe('B')
    expect(await files.read(join(work, 'sub/b'))).toBe('B')
  })
})

describe.each(resolutions)('protected files, %s', (resolution) => {
  const top = tree({
    'work/tools.json': '{}',
    'work/tools.json.lock': '',
    'work/tools.jsonx': 'x',
    'work/tools-x.json': 'x',
    'work/sub/tools.json': 'sub',
    'keys/key': SECRET,
  })
  const work = join(top, 'work')
  linkSync(join(work, 'tools.json'), join(work, 'hard'))
  linkSync(join(work, 'tools.json.lock'), join(work, 'hard-lock'))
  symlinkSync('tools.json', join(work, 'link'))
  symlinkSync(work, join(work, 'here'))
  symlinkSync('tools.json.new', join(work, 'dangling'))
  symlinkSync(join(top, 'keys/key'), join(top, 'key'))
  mkdirSync(join(work, 'tools.json.d'))
  writeFileSync(join(work, 'tools.json.d', 'x'), 'x')
  const files = new Files(rootsOf(work, top), {
    resolution,
    protectedFiles: [join(work, 'tools.json'), join(top, 'key')],
  })

  it.each([
    'tools.json',
    './tools.json',
    join(work, 'tools.json'),
    'link',
    'here/tools.json',
    'here/here/link',
    'hard',
    'hard-lock',
    'tools.json.lock',
    'TOOLS.JSON',
    'Tools.Json.LOCK',
    'tools.json.lock.0123',
    'tools.json.damaged-1',
    'tools-2.json',
    'TOOLS-17.JSON',
    'tools.json.',
    'tools\u200b.json.loc\u212a',
    'tool\u017f.json',
    'ｔools.json',
    'tools.json.d/x',
    join(top, 'keys/key'),
    join(top, 'key'),
  ])('are neither read nor written as %s', async (path) => {
    await expect(files.read(path)).rejects.toThrow('belongs to the server itself; use another file')
    await expect(files.write(path, 'x')).rejects.toThrow(
      'belongs to the server itself; use another file',
    )
  })
  it('are not written through a dangling link', async () => {
    await expect(files.write('dangling', 'x')).rejects.toThrow(
      resolution === 'descriptors' ? 'belongs to the server' : 'cannot be written',
    )
    expect(existsSync(join(work, 'tools.json.new'))).toBe(false)
  })
  it('cannot be listed as directories', async () => {
    await expect(files.list('tools.json.d')).rejects.toThrow('belongs to the server itself')
  })
  it('do not affect other files', async () => {
    expect(await files.read('tools.jsonx')).toBe('x')
    expect(await files.read('tools-x.json')).toBe('x')
    expect(await files.read('sub/tools.json')).toBe('sub')
    await files.write('sub/tools.json.lock', 'mine')
    expect(await namesIn(files, '.')).toContain('tools.json')
  })
})

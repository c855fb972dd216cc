import { execFileSync, spawn } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  closeSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Files, MAX_ENTRIES, MAX_READ } from '../../src/bundled/files.js'
import { temporaryFolder } from './folder.js'

const folder = temporaryFolder()
const outside = join(folder, 'outside')
const SECRET = 'the secret of the outside'
mkdirSync(outside)
writeFileSync(join(outside, 'secret'), SECRET)

let count = 0
/** A new root with a few files. */
function freshRoot(): string {
  const root = join(folder, `root-${++count}`)
  mkdirSync(join(root, 'dir', 'deep'), { recursive: true })
  writeFileSync(join(root, 'a.txt'), 'A')
  writeFileSync(join(root, 'dir', 'b.txt'), 'B')
  mkdirSync(`${root}-evil`)
  writeFileSync(join(`${root}-evil`, 'secret'), SECRET)
  return root
}

const linux = process.platform === 'linux'
const resolutions = linux ? (['descriptors', 'realpath'] as const) : (['realpath'] as const)

describe.each(resolutions)('%s', (resolution) => {
  const filesAt = (root: string) => new Files([{ real: root, given: root }], { resolution })
  const root = freshRoot()
  const files = filesAt(root)

  it('reads, writes and lists', async () => {
    expect(await files.read('a.txt')).toBe('A')
    expect(await files.read('./dir//b.txt')).toBe('B')
    expect(await files.read(join(root, 'dir/b.txt'))).toBe('B')
    expect(await files.write('dir/new.txt', 'héllo')).toBe(6)
    expect(readFileSync(join(root, 'dir/new.txt'), 'utf8')).toBe('héllo')
    expect(await files.list('dir')).toEqual({
      entries: [
        { type: 'F', name: 'b.txt', displayName: 'b.txt', link: false },
        { type: 'D', name: 'deep', displayName: 'deep', link: false },
        { type: 'F', name: 'new.txt', displayName: 'new.txt', link: false },
      ],
      more: false,
    })
    expect((await files.list(root)).entries.map(({ name }) => name)).toEqual(
      (await files.list('.')).entries.map(({ name }) => name),
    )
  })

  it('warns if paths are resolved by realpath', () => {
    const said: string[] = []
    void new Files([{ real: root, given: root }], {
      resolution,
      warn: (message) => void said.push(message),
    })
    expect(said).toEqual(
      resolution === 'realpath'
        ? [expect.stringContaining('This system has no /proc/self/fd')]
        : [],
    )
  })

  describe('rejects', () => {
    const LEAD_OUT: readonly [string, string][] = [
      ['..', '..'],
      ['a way up', '../outside/secret'],
      ['a way up in the middle', 'dir/../../outside/secret'],
      ['a way up that stays inside', 'dir/../a.txt'],
      ['a way up with backslashes', '..\\outside\\secret'],
      ['an absolute path', join(outside, 'secret')],
      ['the absolute way up', `${root}/../outside/secret`],
      ['a sibling with the same beginning', `${root}-evil/secret`],
      ['the home directory', '~/.ssh/id_rsa'],
      ['a bare ~', '~'],
      ['NUL', 'a.txt\0.png'],
      ['nothing', ''],
      ['half a character', 'a\ud800'],
      ['a very long path', 'a/'.repeat(3000)],
      ['system files', '/etc/passwd'],
      ['/proc', '/proc/self/environ'],
      ['/dev', '/dev/zero'],
    ]
    it.each(LEAD_OUT)('%s', async (_, path) => {
      await expect(files.read(path)).rejects.toThrow(/^"|^The path/)
      await expect(files.write(path, 'x')).rejects.toThrow(/^"|^The path/)
      await expect(files.list(path)).rejects.toThrow(/^"|^The path/)
    })

    // These are ordinary names of files that do not exist.
    it.each([
      '%2e%2e%2foutside%2fsecret',
      '..%2foutside%2fsecret',
      '%2e%2e/outside/secret',
      '．．/outside/secret',
      '‥/outside',
      'a.txt%00.png',
    ])('does not decode %s', async (path) => {
      await expect(files.read(path)).rejects.toThrow('does not exist')
    })

    it('errors that disclose the root', async () => {
      const paths = [
        'nope',
        'a.txt/x',
        'dir',
        '../x',
        'x\0',
        `${root}-evil/secret`,
        'nope/deeper',
        'x'.repeat(300),
      ]
      for (const path of paths) {
        for (const attempt of [
          () => files.read(path),
          () => files.write(`${path}/x\0`, ''),
          () => files.list(`${path}/x`),
        ]) {
          const message = await attempt().then(String, ({ message }: Error) => message)
          if (!path.startsWith(root)) expect(message).not.toContain(folder)
          expect(message).not.toContain('/proc')
        }
      }
    })
  })

  it('explains errors with the path as given', async () => {
    const failures: readonly [() => Promise<unknown>, string][] = [
      [() => files.read('nope'), '"nope" does not exist'],
      [() => files.read('dir'), '"dir" is a directory, not a file'],
      [() => files.read('.'), '"." is a directory, not a file'],
      [() => files.write('dir', 'x'), '"dir" is a directory, not a file'],
      [() => files.list('nope'), '"nope" does not exist'],
      [() => files.list('a.txt'), '"a.txt" is not a directory'],
      [
        () => files.write('nope/x', 'x'),
        '"nope/x" cannot be written: its directory does not exist',
      ],
      [() => files.read('a.txt/b'), '"a.txt/b" has a part that is not a directory'],
      [() => files.read('new\nline'), '"new\\nline" does not exist'],
      [() => files.read('turned\u202e'), '"turned\\u{202e}" does not exist'],
      [() => files.read('tag\u{e0041}'), '"tag\\u{e0041}" does not exist'],
      [
        () => files.write('x', 'half \ud800'),
        'The content is not valid Unicode: it contains a lone surrogate',
      ],
    ]
    for (const [attempt, message] of failures) await expect(attempt()).rejects.toThrow(message)
  })

  it.each(['new/', 'new/.', 'a.txt/', 'a.txt//'])('rejects %s as a file', async (path) => {
    await expect(files.read(path)).rejects.toThrow('ends with a slash, like a directory')
    await expect(files.write(path, 'x')).rejects.toThrow('ends with a slash, like a directory')
    expect(existsSync(join(root, 'new'))).toBe(false)
  })

  describe('symbolic links', () => {
    const root = freshRoot()
    const files = filesAt(root)
    const link = (target: string, name: string) => symlinkSync(target, join(root, name))
    link('a.txt', 'file')
    link(join(root, 'a.txt'), 'absolute')
    link('dir', 'to-dir')
    link('dir/deep/../b.txt', 'up-and-down')
    link('dir/deep/../../../outside/secret', 'far-up')
    link(join(outside, 'secret'), 'out')
    link('../outside', 'out-dir')
    link(`${root}-evil/secret`, 'sibling')
    link('loop-2', 'loop-1')
    link('loop-1', 'loop-2')
    link('to-dir/made.txt', 'dangling-inside')
    link('../outside/made.txt', 'dangling-out')
    link('/proc/self/root/etc/passwd', 'proc')
    link('/proc/self/cwd', 'cwd')
    symlinkSync('../../a.txt', join(root, 'dir', 'deep', 'up'))
    link('dir/deep', 'to-deep')
    link(`${root}/to-deep/../b.txt`, 'absolute-up-and-down')
    link(`${root}/nope/../a.txt`, 'up-from-nothing')
    link(`${root}/dir/../../outside/secret`, 'absolute-far-up')

    it('are followed inside the root', async () => {
      expect(await files.read('file')).toBe('A')
      expect(await files.read('absolute')).toBe('A')
      expect(await files.read('to-dir/b.txt')).toBe('B')
      expect(await files.read('up-and-down')).toBe('B')
      expect(await files.read('absolute-up-and-down')).toBe('B')
      await expect(files.read('up-from-nothing')).rejects.toThrow('does not exist')
      expect(await files.read('dir/deep/up')).toBe('A')
      expect((await files.list('to-dir')).entries.map(({ name }) => name)).toEqual([
        'b.txt',
        'deep',
      ])
    })
    it.each([
      'far-up',
      'absolute-far-up',
      'out',
      'out-dir/secret',
      'sibling',
      'proc',
      'cwd',
      'cwd/package.json',
    ])('do not lead outside: %s', async (path) => {
      await expect(files.read(path)).rejects.toThrow(/is outside of the allowed directories/)
      await expect(files.write(path, 'x')).rejects.toThrow(/is outside of the allowed directories/)
      await expect(files.list(path)).rejects.toThrow(/is outside of the allowed directories/)
      expect(readFileSync(join(outside, 'secret'), 'utf8')).toBe(SECRET)
    })
    it('to missing targets outside are not written through', async () => {
      await expect(files.write('dangling-out', 'x')).rejects.toThrow()
      expect(existsSync(join(outside, 'made.txt'))).toBe(false)
    })
    it('stop after 40', async () => {
      await expect(files.read('loop-1')).rejects.toThrow('has too many segments or symbolic links')
    })
    it('are preserved when their target is written', async () => {
      await files.write('file', 'A2')
      expect(lstatSync(join(root, 'file')).isSymbolicLink()).toBe(true)
      expect(readFileSync(join(root, 'a.txt'), 'utf8')).toBe('A2')
    })
    it('are listed as the type of their target if it is inside', async () => {
      const { entries } = await files.list('.')
      const typeOf = (name: string) => entries.find((entry) => entry.name === name)?.type
      expect(typeOf('to-dir')).toBe('D')
      expect(typeOf('out-dir')).toBe('F')
      expect(typeOf('cwd')).toBe('F')
      expect(typeOf('file')).toBe('F')
    })
    it.runIf(resolution === 'descriptors')('may have a missing target inside', async () => {
      await files.write('dangling-inside', 'made')
      expect(readFileSync(join(root, 'dir', 'made.txt'), 'utf8')).toBe('made')
    })
  })

  it('reads up to 1 MB', async () => {
    writeFileSync(join(root, 'full'), 'x'.repeat(MAX_READ))
    writeFileSync(join(root, 'over'), 'x'.repeat(MAX_READ + 1))
    expect((await files.read('full')).length).toBe(MAX_READ)
    await expect(files.read('over')).rejects.toThrow(
      '"over" has 1048577 bytes; at most 1048576 are read',
    )
  })
  it('stops reading a file that keeps growing', async () => {
    const path = join(root, 'growing')
    writeFileSync(path, 'x'.repeat(MAX_READ - 10))
    let growing = true
    const grow = () => {
      appendFileSync(path, 'x'.repeat(10_000))
      if (growing) setImmediate(grow)
    }
    grow()
    await expect(files.read('growing')).rejects.toThrow(/at most 1048576 are read/)
    growing = false
  })
  it('reports binary files', async () => {
    writeFileSync(join(root, 'nul'), 'a\0b')
    writeFileSync(join(root, 'latin'), Buffer.from([0x63, 0xe9]))
    await expect(files.read('nul')).rejects.toThrow(
      '"nul" is a binary file (3 bytes); only UTF-8 text can be read',
    )
    await expect(files.read('latin')).rejects.toThrow('is a binary file')
  })
  it('preserves every character of a text', async () => {
    const text = '\ufeffBOM, CRLF\r\n, U+2028 \u2028 and 🎉\n'
    await files.write('text', text)
    expect(await files.read('text')).toBe(text)
  })

  it.runIf(linux)('distinguishes names by case and Unicode normalization', async () => {
    await files.write('caf\u00e9', 'composed')
    await expect(files.read('cafe\u0301')).rejects.toThrow('does not exist')
    await expect(files.read('CAF\u00c9')).rejects.toThrow('does not exist')
    expect(await files.read('caf\u00e9')).toBe('composed')
  })

  describe('a file that is not regular', () => {
    it.runIf(linux)('is rejected without blocking: a pipe', async () => {
      execFileSync('mkfifo', [join(root, 'pipe')])
      // Four blocking opens would occupy Node's whole thread pool.
      const refusals = Array.from({ length: 8 }, () =>
        expect(files.read('pipe')).rejects.toThrow('"pipe" is not a regular file'),
      )
      await Promise.all([
        ...refusals,
        expect(files.write('pipe', 'x')).rejects.toThrow('"pipe" is not a regular file'),
      ])
      expect(await files.read('a.txt')).toBe('A')
    })
    it.runIf(linux)('is rejected with the root "/": devices and /proc', async () => {
      const all = new Files([{ real: '/', given: '/' }], { resolution })
      for (const path of ['/dev/zero', '/dev/null', '/dev/tty']) {
        if (existsSync(path)) await expect(all.read(path)).rejects.toThrow('is not a regular file')
      }
      for (const path of [
        '/proc/self/environ',
        '/proc/self/mem',
        '/proc/version',
        '/proc/self/root/proc/version',
      ])
        await expect(all.read(path)).rejects.toThrow('is not a regular file')
      await expect(all.write('/proc/self/comm', 'x')).rejects.toThrow('is not a regular file')
      await expect(all.write('/dev/null', 'x')).rejects.toThrow('is not a regular file')
      expect(await all.read(join(root, 'a.txt'))).toBe('A')
    })
  })

  describe('writing', () => {
    it('preserves the mode and the content for processes that have the old file open', async () => {
      const path = join(root, 'script')
      writeFileSync(path, 'old')
      chmodSync(path, 0o750)
      const descriptor = openSync(path, 'r')
      await files.write('script', 'new')
      expect(statSync(path).mode & 0o777).toBe(0o750)
      expect(readFileSync(descriptor, 'utf8')).toBe('old')
      closeSync(descriptor)
    })
    it('does not change the other name of a hard link', async () => {
      linkSync(join(outside, 'secret'), join(root, 'hard'))
      await files.write('hard', 'mine')
      expect(readFileSync(join(outside, 'secret'), 'utf8')).toBe(SECRET)
      expect(await files.read('hard')).toBe('mine')
      rmSync(join(root, 'hard'))
    })
    it('leaves no temporary file', async () => {
      const before = readdirSync(root)
      await files.write('a.txt', 'A')
      await expect(files.write('x'.repeat(256), 'x')).rejects.toThrow('has a name that is too long')
      expect(readdirSync(root)).toEqual(before)
    })
    it.runIf(linux && process.getuid?.() !== 0)(
      'does not replace a file without write permission',
      async () => {
        writeFileSync(join(root, 'locked'), 'locked')
        chmodSync(join(root, 'locked'), 0o444)
        await expect(files.write('locked', 'x')).rejects.toThrow(
          'cannot be written: permission denied',
        )
      },
    )
  })

  describe('listing', () => {
    it.runIf(linux)(
      'escapes control characters and bytes that are not UTF-8 in names',
      async () => {
        const root = freshRoot()
        for (const name of [
          'a\nD fake',
          'tab\there',
          'turned\u202e',
          'back\\slash',
          '\u001b[31mred',
          'tag\u{e0041}',
        ])
          writeFileSync(join(root, name), '')
        writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0xff, 0x0a, 0x41])]), '')
        const { entries } = await filesAt(root).list('.')
        expect(entries.map(({ type, displayName }) => `${type} ${displayName}`)).toEqual([
          'F \\u{1b}[31mred',
          'F \\xff\\x0aA',
          'F a.txt',
          'F a\\nD fake',
          'F back\\\\slash',
          'D dir',
          'F tab\\u{9}here',
          'F tag\\u{e0041}',
          'F turned\\u{202e}',
        ])
        expect(entries.find(({ name }) => name === 'a\nD fake')).toBeDefined()
      },
    )
    it.runIf(resolution === resolutions[0])('is limited to 10,000 entries', async () => {
      const root = freshRoot()
      mkdirSync(join(root, 'many'))
      for (let i = 0; i <= MAX_ENTRIES; i++) closeSync(openSync(join(root, 'many', String(i)), 'w'))
      const { entries, more } = await filesAt(root).list('many')
      expect(entries).toHaveLength(MAX_ENTRIES)
      expect(more).toBe(true)
    })
  })
})

it.runIf(linux)('leaves no descriptor open after errors', async () => {
  const root = freshRoot()
  const files = new Files([{ real: root, given: root }])
  symlinkSync('dir/deep', join(root, 'link'))
  const open = () => readdirSync('/proc/self/fd').length
  const attempts = () => [
    files.read('a.txt'),
    files.read('link/../../x'),
    files.read('link/nope'),
    files.read('dir'),
    files.write('link/x', 'x'),
    files.write('nope/x', 'x'),
    files.list('link'),
    files.list('a.txt'),
  ]
  await Promise.allSettled(attempts())
  const before = open()
  for (let i = 0; i < 20; i++) await Promise.allSettled(attempts())
  expect(open()).toBeLessThanOrEqual(before)
})

it('leaves the old or the new content if the writer is killed', async () => {
  const root = freshRoot()
  const path = join(root, 'a.txt')
  const writer = new URL('processes/write.mjs', import.meta.url).pathname
  const bundle = new URL('../../dist/files.js', import.meta.url).href
  writeFileSync(path, 'x'.repeat(100_000))
  for (let round = 0; round < 12; round++) {
    const child = spawn(process.execPath, [writer, bundle, root], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const ended = new Promise((resolve) => child.on('exit', resolve))
    // It has written `round` times and is writing again.
    await new Promise<void>((resolve) => {
      let seen = 0
      child.stdout.on('data', (chunk: Buffer) => {
        seen += chunk.length
        if (seen > round) resolve()
      })
    })
    child.kill('SIGKILL')
    await ended
    const content = readFileSync(path, 'utf8')
    expect(content).toHaveLength(100_000)
    expect(content).toBe((content[0] ?? '').repeat(100_000))
  }
})

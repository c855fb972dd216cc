import { type ChildProcessByStdio, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { readFile, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { fc, runs } from '../fast-check.js'
import { afterEach, describe, expect, it } from 'vitest'
import { Files } from '../../src/bundled/files.js'
import type { RootList } from '../../src/bundled/roots.js'
import { temporaryFolder } from './folder.js'

/*
 * The file tools stay inside the root while another process swaps files for
 * links. `npm run confinement` runs longer, and also shows that a server that
 * checks a path before opening it leaks.
 */
const SECONDS = Number(process.env['CONFINEMENT_SECONDS'] ?? '1')
const thorough = process.env['CONFINEMENT_SECONDS'] !== undefined
const linux = process.platform === 'linux'
const SECRET = 'the secret of the outside'
const folder = temporaryFolder()

/** Programs that swap: by several renames, or, much faster, by an atomic exchange, which Node lacks. */
const SWAPPERS = {
  renames: [process.execPath, new URL('processes/swap.mjs', import.meta.url).pathname],
  exchanges: ['python3', new URL('processes/exchange.py', import.meta.url).pathname],
} as const
type Swapper = keyof typeof SWAPPERS
const hasPython =
  spawnSync('python3', ['-c', 'import ctypes; ctypes.CDLL(None).renameat2']).status === 0
const swappers: readonly Swapper[] = hasPython ? ['renames', 'exchanges'] : ['renames']

type Child = ChildProcessByStdio<Writable, Readable, null>
const children = new Set<Child>()
afterEach(async () => {
  await Promise.all([...children].map((child) => end(child)))
  children.clear()
})

function end(child: Child): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve()
  return new Promise((resolve) => {
    child.on('exit', () => resolve())
    child.kill('SIGKILL')
  })
}

/** Waits for the first output. */
const ready = (child: Child) =>
  new Promise<void>((resolve, reject) => {
    child.stdout.once('data', () => resolve())
    child.once('close', (code) => reject(new Error(`The swapping process ended with ${code}`)))
  })

/** A checksum of everything under a directory. */
function fingerprint(directory: string): string {
  const hash = createHash('sha256')
  for (const name of readdirSync(directory, { recursive: true, encoding: 'utf8' }).toSorted()) {
    hash.update(`${name}\0`)
    try {
      hash.update(readFileSync(join(directory, name)))
    } catch {
      hash.update('directory')
    }
  }
  return hash.digest('hex')
}

interface Access {
  read(path: string): Promise<string>
  write(path: string, content: string): Promise<unknown>
  list(path: string): Promise<{ entries: readonly { name: string }[] }>
}

/** Reads, writes and lists while another process swaps the files. */
async function race(name: string, make: (root: string) => Access, swapper: Swapper) {
  const [root, outside] = [
    join(folder, `${name}-${swapper}-root`),
    join(folder, `${name}-${swapper}-outside`),
  ]
  mkdirSync(root)
  mkdirSync(join(outside, 'deep'), { recursive: true })
  for (const place of ['secret', 'deep/secret', 'only-outside', 'deep/only-outside'])
    writeFileSync(join(outside, place), SECRET)
  const before = fingerprint(outside)
  const [program, script] = SWAPPERS[swapper]
  const child = spawn(program, [script, root, outside], { stdio: ['pipe', 'pipe', 'inherit'] })
  children.add(child)
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  await ready(child)
  const access = make(root)
  const count = { attempts: 0, done: 0, escapes: 0 }
  const refusals = new Set<string>()
  const deadline = performance.now() + SECONDS * 1000
  const attempt = async (work: () => Promise<boolean>) => {
    count.attempts++
    try {
      if (await work()) count.escapes++
      count.done++
    } catch (error) {
      // Rejected, or missing at the moment.
      refusals.add((error as Error).message)
    }
  }
  const reads = [
    'file',
    'directory/secret',
    'directory/deep/secret',
    'turning/secret',
    'turning/deep/secret',
    'still/deep/secret',
  ]
  const writes = ['directory/secret', 'turning/new', 'directory/deep/new', 'still/deep/new', 'file']
  const lists = ['directory', 'turning', 'still/deep']
  const work = async (turn: number) => {
    // A busy machine needs longer.
    const isEnough = () => count.done > 40 && output.includes('swapping')
    const isTimeLeft = () => performance.now() < deadline + (isEnough() ? 0 : 60_000)
    for (let i = turn; isTimeLeft(); i++) {
      const [read = '', write = '', list = ''] = [
        reads[i % reads.length],
        writes[i % writes.length],
        lists[i % lists.length],
      ]
      await attempt(async () => (await access.read(read)).includes(SECRET))
      if (i % 8 === 0) await attempt(async () => (await access.write(write, 'inside'), false))
      await attempt(async () =>
        (await access.list(list)).entries.some((entry) => entry.name === 'only-outside'),
      )
    }
  }
  await Promise.all([0, 1, 2, 3].map(work))
  const closed = new Promise((resolve) => child.once('close', resolve))
  child.stdin.end()
  await closed
  const swaps = Number(output.trim().split('\n').at(-1))
  const untouched = fingerprint(outside) === before
  console.log(
    `confinement, ${name}, ${swapper}: ${count.attempts} attempts (${count.done} carried out) against ${swaps} swaps, ${count.escapes} escapes, outside ${untouched ? 'untouched' : 'CHANGED'}`,
  )
  return { ...count, swaps, untouched, refusals }
}

describe.runIf(linux)('confinement while another process swaps files for links', () => {
  it.each(swappers)(
    'reads, lists and writes nothing outside of the root (%s)',
    async (swapper) => {
      const { done, escapes, swaps, untouched, refusals } = await race(
        'ours',
        (root) => new Files([{ real: root, given: root }]),
        swapper,
      )
      expect({ escapes, untouched }).toEqual({ escapes: 0, untouched: true })
      // Otherwise the test would prove nothing.
      expect(Math.min(done, swaps)).toBeGreaterThan(20)
      // Every error has an explanation, not only a system error code.
      expect([...refusals].filter((message) => /\(E[A-Z]+\)/.test(message))).toEqual([])
    },
    (SECONDS + 120) * 1000,
  )

  it.each(swappers)(
    'also with nested roots that are swapped themselves (%s)',
    async (swapper) => {
      const make = (root: string): Access => {
        const [first, second, outer] = [
          join(root, 'directory/deep'),
          join(root, 'still/deep'),
          root,
        ]
        const files = new Files([
          { real: first, given: first },
          { real: second, given: second },
          { real: outer, given: outer },
        ])
        // Relative to the first root, which is sometimes a link to the outside, and by absolute paths.
        return {
          read: (path) => files.read(path === 'file' ? 'secret' : join(root, path)),
          write: (path, content) =>
            files.write(path === 'file' ? 'new' : join(root, path), content),
          list: (path) => files.list(path === 'turning' ? '.' : join(root, path)),
        }
      }
      const { done, escapes, swaps, untouched } = await race('several roots', make, swapper)
      expect({ escapes, untouched }).toEqual({ escapes: 0, untouched: true })
      expect(Math.min(done, swaps)).toBeGreaterThan(20)
    },
    (SECONDS + 120) * 1000,
  )

  it.runIf(thorough).each(swappers)(
    'a program that checks a path before opening it leaks (%s)',
    async (swapper) => {
      const naive = (root: string): Access => {
        const inside = async (path: string) => {
          const real = await realpath(join(root, path))
          if (!real.startsWith(`${root}/`)) throw new Error('outside')
          return real
        }
        return {
          read: async (path) => readFile(await inside(path), 'utf8'),
          write: async (path, content) => writeFileSync(await inside(path), content),
          list: async (path) => ({
            entries: readdirSync(await inside(path)).map((name) => ({ name })),
          }),
        }
      }
      const { escapes } = await race('check first, then open', naive, swapper)
      expect(escapes).toBeGreaterThan(0)
    },
    (SECONDS + 120) * 1000,
  )

  it.runIf(thorough).each(swappers)(
    'without /proc/self/fd, swaps can escape, as docs/files.md says (%s)',
    async (swapper) => {
      const { attempts } = await race(
        'second look',
        (root) => new Files([{ real: root, given: root }], { resolution: 'realpath' }),
        swapper,
      )
      expect(attempts).toBeGreaterThan(20)
    },
    (SECONDS + 120) * 1000,
  )
})

describe('confinement for arbitrary trees and paths', () => {
  const outside = join(folder, 'all-outside')
  mkdirSync(join(outside, 'b'), { recursive: true })
  for (const name of ['a', 'b/a', 'only-outside']) writeFileSync(join(outside, name), SECRET)

  const NAMES = ['a', 'b', 'c']
  const path = fc
    .array(
      fc.constantFrom(
        ...NAMES,
        ...NAMES,
        '..',
        '.',
        '',
        '~',
        '%2e%2e',
        'a\\..',
        '\u2025',
        'é',
        'e\u0301',
        outside,
      ),
      {
        minLength: 1,
        maxLength: 6,
      },
    )
    .chain((parts) =>
      fc.constantFrom(
        parts.join('/'),
        `/${parts.join('/')}`,
        `${folder}/all-root/${parts.join('/')}`,
        `${folder}/all-second/${parts.join('/')}`,
      ),
    )
  const target = fc.oneof(
    fc
      .array(fc.constantFrom(...NAMES, '..', '..', '.'), { minLength: 1, maxLength: 5 })
      .map((parts) => parts.join('/')),
    fc.constantFrom(
      outside,
      `${outside}/a`,
      '/',
      '../all-outside',
      '../../',
      '/proc/self/cwd',
      '/proc/self/root',
      `${folder}/all-root/b`,
      '../all-second',
      '../all-second/../all-outside',
      `${folder}/all-second/b`,
      `${folder}/all-second/../all-outside/a`,
    ),
  )
  const tree = fc.array(
    fc.record({
      at: fc
        .array(fc.constantFrom(...NAMES), { minLength: 1, maxLength: 3 })
        .map((parts) => parts.join('/')),
      what: fc.oneof(
        fc.constant({ kind: 'file' as const }),
        fc.constant({ kind: 'directory' as const }),
        target.map((to) => ({ kind: 'link' as const, to })),
      ),
    }),
    { maxLength: 8 },
  )
  const operation = fc.record({ kind: fc.constantFrom('read', 'write', 'list'), path })

  /** Creates the links to the outside first, so that nothing is created through one. */
  function plant(root: string, plan: { at: string; what: { kind: string; to?: string } }[]) {
    rmSync(root, { recursive: true, force: true })
    mkdirSync(root)
    for (const { at, what } of plan) {
      const spot = join(root, at)
      const above = at.split('/').slice(0, -1)
      if (
        above.some((_, index) => isLinkOrFile(join(root, ...above.slice(0, index + 1)))) ||
        isThere(spot)
      )
        continue
      mkdirSync(join(root, ...above), { recursive: true })
      if (what.kind === 'file') writeFileSync(spot, 'inside')
      else if (what.kind === 'directory') mkdirSync(spot)
      else symlinkSync(what.to ?? '', spot)
    }
  }
  const entryOf = (spot: string) => {
    const name = spot.slice(spot.lastIndexOf('/') + 1)
    const directory = spot.slice(0, -name.length)
    return existsSync(directory)
      ? readdirSync(directory, { withFileTypes: true }).find((entry) => entry.name === name)
      : undefined
  }
  const isThere = (spot: string) => entryOf(spot) !== undefined
  const isLinkOrFile = (spot: string) => entryOf(spot)?.isDirectory() === false

  const resolutions = linux ? (['descriptors', 'realpath'] as const) : (['realpath'] as const)
  const [root, second] = [join(folder, 'all-root'), join(folder, 'all-second')]
  const inner = join(root, 'b')
  const rootOf = (path: string) => ({ real: path, given: path })
  const ROOTS: readonly [string, RootList][] = [
    ['one root', [rootOf(root)]],
    ['several roots', [rootOf(inner), rootOf(second), rootOf(root)]],
  ]
  const cases = resolutions.flatMap((resolution) =>
    ROOTS.map(([name, roots]) => [resolution, name, roots] as const),
  )
  it.each(cases)(
    '%s: reads and writes nothing outside of the root',
    async (resolution, name, roots) => {
      const files = new Files(roots, { resolution })
      const before = fingerprint(outside)
      let attempts = 0
      await fc.assert(
        fc.asyncProperty(
          tree,
          tree,
          fc.array(operation, { minLength: 1, maxLength: 10 }),
          async (plan, other, operations) => {
            plant(root, plan)
            plant(second, other)
            for (const { kind, path } of operations) {
              attempts++
              try {
                if (kind === 'read') expect(await files.read(path)).not.toContain(SECRET)
                else if (kind === 'write') await files.write(path, 'inside')
                else
                  expect((await files.list(path)).entries.map(({ name }) => name)).not.toContain(
                    'only-outside',
                  )
              } catch (error) {
                expect((error as Error).name).toBe('ToolError')
                const { message } = error as Error
                if (!path.includes(folder) && roots.length === 1)
                  expect(message).not.toContain(folder)
              }
            }
          },
        ),
        // Stops in time also on a slow machine.
        thorough
          ? { numRuns: 5000, interruptAfterTimeLimit: SECONDS * 1000 }
          : { numRuns: runs(150) },
      )
      expect(fingerprint(outside)).toBe(before)
      console.log(
        `confinement, any tree (${resolution}, ${name}): ${attempts} attempts, outside untouched`,
      )
    },
    (SECONDS + 60) * 1000,
  )
})

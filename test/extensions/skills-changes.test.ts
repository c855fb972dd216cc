import fs, { appendFileSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { type Client, connect, memory } from '../../src/client.js'
import { createServer } from '../../src/index.js'
import { handshakeRevisions, newest } from '../../src/protocol/revisions/index.js'
import { type Skill, skills } from '../../src/skills.js'
import { connectInMemory } from '../../src/testing.js'
import type { LogEntry } from '../../src/extensions.js'
import { folderWith, skillText, write } from './skill-folders.js'

afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

const A = 'skill://a/SKILL.md'
const serverOf = (folder: string) =>
  createServer({ name: 'x', version: '1', extensions: [skills({ folder })] })
const entries = async (client: Client) =>
  ((await client.request('skills/list')) as unknown as { skills: Skill[] }).skills
const digestIn = (found: readonly Skill[], uri: string) =>
  found
    .flatMap(({ resources }) => (resources === 'dynamic' ? [] : resources))
    .find((each) => each.uri === uri)?.digest
/** Resolves when something has become true, which is checked at each of the client's notifications. */
const heard = (add: (told: () => void) => unknown) =>
  new Promise<void>((resolve) => void add(resolve))

/** Waits until a check passes; each of them sends requests. */
const eventually = (check: () => void | Promise<void>) =>
  vi.waitFor(check, { timeout: 60_000, interval: 10 })

/** Changes the clock of a file, so that it seems to be old. */
function age(...files: string[]): void {
  const before = new Date(Date.now() - 60_000)
  for (const file of files) utimesSync(file, before, before)
}

describe.each([handshakeRevisions.at(-1)?.id ?? '', newest.id])(
  'changes of a folder, in %s',
  (revision) => {
    const open = (folder: string) => connect(memory(serverOf(folder)), { revision })

    it('of a file are sent to those who have subscribed to it', async () => {
      const folder = folderWith({ 'a/SKILL.md': skillText('a'), 'a/x.md': 'one' })
      await using client = await open(folder)
      const before = await entries(client)
      const told = heard((resolve) => client.subscribe('skill://a/x.md', resolve))
      await client.request('skills/list')
      writeFileSync(join(folder, 'a/x.md'), 'two, longer')
      await told
      const now = await entries(client)
      expect(digestIn(now, 'skill://a/x.md')).not.toBe(digestIn(before, 'skill://a/x.md'))
      expect(digestIn(now, A)).toBe(digestIn(before, A))
      expect((await client.readResource('skill://a/x.md')).contents[0]?.text).toBe('two, longer')
    })

    it('of the skills are changes of the list of resources', async () => {
      const folder = folderWith({ 'a/SKILL.md': skillText('a') })
      await using client = await open(folder)
      await entries(client)
      const added = heard((resolve) => client.watch('resources', resolve))
      await client.request('skills/list')
      write(folder, { 'team/b/SKILL.md': skillText('b'), 'team/b/deep/er/x.md': 'x' })
      await added
      expect((await entries(client)).map(({ uri }) => uri)).toContain('skill://team/b/SKILL.md')
      const removed = heard((resolve) => client.watch('resources', resolve))
      await client.request('skills/list')
      rmSync(join(folder, 'team'), { recursive: true })
      await removed
      expect((await entries(client)).map(({ uri }) => uri)).toEqual([A])
    })

    it('of a description change the list of resources', async () => {
      const folder = folderWith({ 'a/SKILL.md': skillText('a') })
      await using client = await open(folder)
      const changed = heard((resolve) => client.watch('resources', resolve))
      await client.request('skills/list')
      writeFileSync(join(folder, 'a/SKILL.md'), '---\nname: a\ndescription: Something else\n---\n')
      await changed
      expect(await entries(client)).toMatchObject([
        { frontmatter: { description: 'Something else' } },
      ])
      for await (const { description } of client.resources())
        expect(description).toBe('Something else')
    })

    it('are noticed in a folder that has replaced another', async () => {
      const folder = folderWith({ 'a/SKILL.md': skillText('a'), 'a/x.md': 'one' })
      await using client = await open(folder)
      await entries(client)
      for (const text of ['two..', 'three....', 'four......']) {
        const told = heard((resolve) => client.subscribe('skill://a/x.md', resolve))
        await client.request('skills/list')
        write(folder, { 'new/SKILL.md': skillText('a'), 'new/x.md': text })
        rmSync(join(folder, 'a'), { recursive: true })
        renameSync(join(folder, 'new'), join(folder, 'a'))
        await told
        await eventually(async () =>
          expect((await client.readResource('skill://a/x.md')).contents[0]?.text).toBe(text),
        )
      }
    })
  },
)

describe('a skill that is no longer valid', () => {
  it('is left out and logged once; it comes back when it is repaired', async () => {
    const folder = folderWith({ 'a/SKILL.md': skillText('a'), 'b/SKILL.md': skillText('b') })
    const server = serverOf(folder)
    const log: LogEntry[] = []
    // Acquires the extension with a log.
    const channel = connectInMemory(server, { report: (entry) => log.push(entry) })
    await using client = await connect(memory(server))
    expect(await entries(client)).toHaveLength(2)
    writeFileSync(join(folder, 'a/SKILL.md'), 'no front matter')
    await eventually(async () => expect(await entries(client)).toHaveLength(1))
    await expect(client.readResource(A)).rejects.toMatchObject({ code: -32602 })
    await expect(client.request('skills/get', { uri: A })).rejects.toMatchObject({ code: -32602 })
    writeFileSync(join(folder, 'b/x.md'), 'another change')
    await eventually(async () => expect((await entries(client))[0]?.resources).toHaveLength(2))
    const warnings = log.filter(({ level }) => level === 'warning').map(({ message }) => message)
    expect(warnings).toEqual([
      expect.stringMatching(/some are not served:\n.*a\/SKILL\.md: line 1/),
    ])
    writeFileSync(join(folder, 'a/SKILL.md'), skillText('a'))
    await eventually(async () => expect(await entries(client)).toHaveLength(2))
    await channel.close()
  })

  it('does not stop the server when the whole folder is gone', async () => {
    const folder = folderWith({ 'a/SKILL.md': skillText('a') })
    await using client = await connect(memory(serverOf(folder)))
    rmSync(folder, { recursive: true })
    await eventually(async () => expect(await entries(client)).toEqual([]))
    await expect(client.readResource(A)).rejects.toMatchObject({ code: -32602 })
  })
})

describe('digests', () => {
  const FILES = { 'a/SKILL.md': skillText('a'), 'a/x.md': 'one', 'a/y.md': 'two' }

  it('are computed once per change of a file', async () => {
    const folder = folderWith(FILES)
    const hashed = vi.spyOn(crypto.subtle, 'digest')
    await using client = await connect(memory(serverOf(folder)))
    // The time of the last change cannot be set: the clock goes on instead.
    vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 10_000)
    const before = digestIn(await entries(client), 'skill://a/x.md')
    expect(hashed).toHaveBeenCalledTimes(3)
    await Promise.all([entries(client), entries(client), client.request('skills/get', { uri: A })])
    expect(hashed).toHaveBeenCalledTimes(3)
    appendFileSync(join(folder, 'a/x.md'), 'more')
    await eventually(async () =>
      expect(digestIn(await entries(client), 'skill://a/x.md')).not.toBe(before),
    )
    expect(hashed).toHaveBeenCalledTimes(4)
  })

  it('notice a change that leaves size and time of modification as they were', async () => {
    const folder = folderWith(FILES)
    const file = join(folder, 'a/x.md')
    age(file)
    await using client = await connect(memory(serverOf(folder)))
    const before = digestIn(await entries(client), 'skill://a/x.md')
    writeFileSync(file, 'eno')
    age(file)
    await eventually(async () =>
      expect(digestIn(await entries(client), 'skill://a/x.md')).not.toBe(before),
    )
  })

  it('of a file that changes all the time leave its skill out of the list, and nothing else', async () => {
    const folder = folderWith({ ...FILES, 'b/SKILL.md': skillText('b') })
    await using client = await connect(memory(serverOf(folder)))
    await entries(client)
    const file = join(folder, 'a/x.md')
    let length = 0
    const read = fs.read
    vi.spyOn(fs, 'read').mockImplementation((...given: Parameters<typeof read>) => {
      writeFileSync(file, 'x'.repeat(++length))
      return read(...given)
    })
    appendFileSync(file, 'more')
    await eventually(async () =>
      expect((await entries(client)).map(({ uri }) => uri)).toEqual(['skill://b/SKILL.md']),
    )
    await expect(client.request('skills/get', { uri: A })).rejects.toMatchObject({
      code: -32603,
      message: `The files of ${A} are being changed; try again later`,
    })
    await expect(client.readResource('skill://a/x.md')).rejects.toMatchObject({ code: -32603 })
  })
})

describe('where folders cannot be watched', () => {
  it('they are looked at when they are needed', async () => {
    const folder = folderWith({ 'a/SKILL.md': skillText('a') })
    const watch = vi.spyOn(fs, 'watch').mockImplementation(() => {
      throw Object.assign(new Error('no space'), { code: 'ENOSPC' })
    })
    await using client = await connect(memory(serverOf(folder)))
    expect(await entries(client)).toHaveLength(1)
    write(folder, { 'b/SKILL.md': skillText('b') })
    await eventually(async () => expect(await entries(client)).toHaveLength(2))
    expect(watch).toHaveBeenCalled()
  })

  it('they are looked at from time to time, and clients are notified', async () => {
    const folder = folderWith({ 'a/SKILL.md': skillText('a') })
    vi.spyOn(fs, 'watch').mockImplementation(() => {
      throw new Error('not here')
    })
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    await using client = await connect(memory(serverOf(folder)))
    await entries(client)
    const told = heard((resolve) => client.watch('resources', resolve))
    await client.request('ping').catch(() => {})
    write(folder, { 'b/SKILL.md': skillText('b') })
    vi.advanceTimersByTime(5000)
    await told
    expect(vi.getTimerCount()).toBe(1)
    await client.close()
    await eventually(() => expect(vi.getTimerCount()).toBe(0))
  })

  it('a watcher that fails later is replaced by looking', async () => {
    const folder = folderWith({ 'a/SKILL.md': skillText('a') })
    const watchers: fs.FSWatcher[] = []
    const watch = fs.watch
    vi.spyOn(fs, 'watch').mockImplementation((...given: Parameters<typeof watch>) => {
      const watcher = watch(...given)
      watchers.push(watcher)
      return watcher
    })
    await using client = await connect(memory(serverOf(folder)))
    await entries(client)
    watchers.at(-1)?.emit('error', new Error('gone'))
    write(folder, { 'b/SKILL.md': skillText('b') })
    await eventually(async () => expect(await entries(client)).toHaveLength(2))
  })
})

describe('watchers', () => {
  it('are closed when the server is no longer served', async () => {
    const folder = folderWith({ 'a/SKILL.md': skillText('a'), 'a/b/c/x.md': 'x' })
    let open = 0
    const watch = fs.watch
    vi.spyOn(fs, 'watch').mockImplementation((...given: Parameters<typeof watch>) => {
      const watcher = watch(...given)
      open++
      watcher.on('close', () => open--)
      return watcher
    })
    const client = await connect(memory(serverOf(folder)))
    await entries(client)
    await eventually(() => expect(open).toBe(4))
    for (let times = 0; times < 5; times++) {
      write(folder, { [`a/new${times}.md`]: 'x' })
      await eventually(async () =>
        expect((await entries(client))[0]?.resources).toHaveLength(3 + times),
      )
    }
    await eventually(() => expect(open).toBe(4))
    await client.close()
    await eventually(() => expect(open).toBe(0))
  })
})

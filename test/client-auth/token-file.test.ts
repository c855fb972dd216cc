import {
  chmodSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { TokenFile } from '../../src/cli/token-file.js'

describe('the file of tokens', () => {
  let directory: string
  beforeEach(() => {
    directory = join(mkdtempSync(join(tmpdir(), 'ccmcp-tokens-')), 'ccmcp')
  })
  afterEach(() => rmSync(directory, { recursive: true, force: true }))

  it('keeps what several writers add at the same time', async () => {
    const stores = Array.from({ length: 20 }, () => new TokenFile(directory))
    await Promise.all(stores.map((store, index) => store.set(`key ${index}`, `${index}`)))
    expect((await new TokenFile(directory).keys()).length).toBe(20)
    expect(statSync(join(directory, 'tokens.json')).mode & 0o777).toBe(0o600)
    expect(readdirSync(directory)).toEqual(['tokens.json'])
  })

  it('has no value for a key of Object.prototype', async () => {
    const store = new TokenFile(directory)
    await store.set('a', 'b')
    expect(await store.get('constructor')).toBeUndefined()
    await store.delete('a')
    expect(await store.get('a')).toBeUndefined()
  })

  it.each(['{"a": "SECRET', '[]', '7'])('%s is refused without being repeated', async (text) => {
    const store = new TokenFile(directory)
    await store.set('a', 'b')
    writeFileSync(join(directory, 'tokens.json'), text)
    await expect(store.get('a')).rejects.toThrow(/^(?!.*SECRET).*Delete it, and log in again$/)
  })

  it.skipIf(process.platform === 'win32')('is made private again', async () => {
    const store = new TokenFile(directory)
    await store.set('a', 'b')
    const file = join(directory, 'tokens.json')
    chmodSync(file, 0o644)
    expect(await store.get('a')).toBe('b')
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  it.skipIf(process.platform === 'win32')('does not write through a link', async () => {
    const target = `${directory}-target`
    writeFileSync(target, '{}')
    await new TokenFile(directory).set('a', 'b')
    const file = join(directory, 'tokens.json')
    rmSync(file)
    symlinkSync(target, file)
    await new TokenFile(directory).set('a', 'c')
    expect(readFileSync(target, 'utf8')).toBe('{}')
    expect(lstatSync(file).isFile()).toBe(true)
    symlinkSync(target, `${file}.lock`)
    await expect(new TokenFile(directory).set('a', 'd')).rejects.toThrow(/not a regular file/)
    expect(readFileSync(target, 'utf8')).toBe('{}')
    rmSync(target)
  })

  it('runs one function at a time', async () => {
    const stores = [1, 2, 3].map(() => new TokenFile(directory))
    let [running, most, runs] = [0, 0, 0]
    const run = async () => {
      most = Math.max(most, ++running)
      await stores[0]?.set('key', `${runs}`)
      running--
      return ++runs
    }
    const results = await Promise.all(stores.map((store) => store.exclusively('login', run)))
    expect(new Set(results)).toEqual(new Set([1, 2, 3]))
    expect(most).toBe(1)
    expect(readdirSync(directory)).toEqual(['tokens.json'])
  })

  it('keeps the lock of a process alive that works for long', async () => {
    const store = new TokenFile(directory, { stale: 100 })
    const changed = () => statSync(join(directory, readdirSync(directory)[0] ?? '')).mtimeMs
    await store.exclusively('login', async () => {
      const before = changed()
      await vi.waitUntil(() => changed() > before, { timeout: 60_000 })
    })
  })

  it('takes over the lock of a killed process', async () => {
    const store = new TokenFile(directory, { stale: 20 })
    let lock = ''
    await store.exclusively('login', () => {
      lock = readdirSync(directory)[0] ?? ''
      return Promise.resolve()
    })
    writeFileSync(join(directory, lock), '')
    expect(await store.exclusively('login', () => Promise.resolve(7))).toBe(7)
    expect(readdirSync(directory)).toEqual([])
  })

  it('stops waiting when it is aborted', async () => {
    const controller = new AbortController()
    const store = new TokenFile(directory, { signal: controller.signal })
    await new TokenFile(directory).exclusively('login', async () => {
      const waiting = store.exclusively('login', () => Promise.resolve())
      controller.abort(new Error('enough'))
      await expect(waiting).rejects.toThrow()
    })
  })
})

import { mkdtempSync, rmSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'

/* Code paths for Windows, run on any system with the path functions or the platform of Windows. */

afterEach(() => {
  vi.doUnmock('node:path')
  vi.resetModules()
  vi.restoreAllMocks()
})

describe('roots with Windows paths', () => {
  const load = async () => {
    vi.resetModules()
    vi.doMock('node:path', async (original) => {
      const { win32 } = await original<typeof import('node:path')>()
      return { ...win32, default: win32 }
    })
    return import('../../src/bundled/roots.js')
  }

  it('splits paths at both separators and keeps the drive as first segment', async () => {
    const { segmentsOf } = await load()
    expect(segmentsOf('C:\\Users/me\\.\\notes')).toEqual(['C:', 'Users', 'me', 'notes'])
  })

  it('finds the root without regard to case', async () => {
    const { Roots, segmentsOf } = await load()
    const roots = new Roots([{ real: 'C:\\Data', given: 'C:\\Data' }])
    expect(roots.locate(segmentsOf('c:/DATA/x.txt'))).toEqual({
      root: 'C:\\Data',
      segments: ['x.txt'],
    })
    expect(roots.locate(segmentsOf('D:\\Data\\x.txt'))).toBeUndefined()
    expect(roots.locate(segmentsOf('C:\\Database\\x.txt'))).toBeUndefined()
  })
})

describe('protected files on Windows', () => {
  it('include alternate data streams and names with trailing dots and spaces', async () => {
    vi.spyOn(process, 'platform', 'get').mockReturnValue('win32')
    const { ProtectedFiles } = await import('../../src/bundled/protected-files.js')
    const directory = mkdtempSync(join(tmpdir(), 'ccmcp-windows-'))
    try {
      const files = new ProtectedFiles([join(directory, 'tools.json')])
      const has = (name: string) => files.has(name, () => stat(directory))
      expect(await has('tools.json:stream')).toBe(true)
      expect(await has('TOOLS.JSON. .')).toBe(true)
      expect(await has('tools.json.lock::$DATA')).toBe(true)
      expect(await has('other.json:tools.json')).toBe(false)
      // In linear time.
      expect(await has(`${'. '.repeat(500_000)}x`)).toBe(false)
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  })
})

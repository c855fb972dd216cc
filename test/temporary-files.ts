/*
 * Temporary files of the tests are kept in memory where possible: a server waits for the disk
 * when it writes a file, and on a busy one that may take longer than it waits for its last
 * calls at the end of its input.
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** A file system in memory, on Linux. */
const SHARED_MEMORY = '/dev/shm'
/** Bytes that must be free; the tests use less than 100 MB. */
const REQUIRED = 512 * 1024 ** 2

/** Global setup of vitest: workers and the processes of tests inherit the variable. */
export function setup(): (() => void) | undefined {
  const folder = inMemory()
  if (folder === undefined) return undefined
  process.env['TMPDIR'] = folder
  return () => rmSync(folder, { recursive: true, force: true })
}

function inMemory(): string | undefined {
  try {
    const { bavail, bsize } = statfsSync(SHARED_MEMORY)
    if (bavail * bsize < REQUIRED) return undefined
    const folder = mkdtempSync(join(SHARED_MEMORY, 'ccmcp-tests-'))
    // As /tmp: some tests run programs as another user.
    chmodSync(folder, 0o1777)
    if (canExecute(folder)) return folder
    rmSync(folder, { recursive: true })
  } catch {
    // It does not exist, or is not writable.
  }
  return undefined
}

/** In containers it is often mounted with `noexec`, and some tests run scripts that they write. */
function canExecute(folder: string): boolean {
  const script = join(folder, 'script')
  writeFileSync(script, '#!/bin/sh\n', { mode: 0o755 })
  const { status } = spawnSync(script)
  rmSync(script)
  return status === 0
}

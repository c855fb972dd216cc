import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'

/** A temporary directory for a test file, removed afterwards. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), 'ccmcp-bundled-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

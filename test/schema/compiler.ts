import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
/** The path that a program imports instead of 'ccmcp'. */
export const ENTRY = join(ROOT, 'src/index.ts')

/** The output of the project's compiler for some files, or for a program in a temporary directory. */
export function compile(
  what: { program: string } | { files: string[] },
  ...flags: string[]
): { output: string; status: number | null } {
  const folder = mkdtempSync(join(tmpdir(), 'ccmcp-types-'))
  try {
    const files = 'files' in what ? what.files : [join(folder, 'program.ts')]
    if ('program' in what) writeFileSync(join(folder, 'program.ts'), what.program)
    const compilerOptions = {
      typeRoots: [join(ROOT, 'node_modules/@types')],
      allowImportingTsExtensions: true,
    }
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
    writeFileSync(
      join(folder, 'tsconfig.json'),
      JSON.stringify({ extends: join(ROOT, 'tsconfig.json'), compilerOptions, include: [], files }),
    )
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
    const { stdout, stderr, status } = spawnSync(process.execPath, [tsc, '-p', folder, ...flags], {
      encoding: 'utf8',
    })
    return { output: stdout + stderr, status }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

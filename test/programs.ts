/*
 * Programs that some tests need and that npm does not install: a browser, for example. Tests
 * that need one use `test.skipIf(program === undefined)`; the global setup below names what
 * was skipped, and fails the run where `TESTS_REQUIRE_PROGRAMS` is set, as in `.ci/run`.
 */
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

interface Program {
  /** What the tests use it for. */
  readonly purpose: string
  /** Environment variable with the path of the executable. */
  readonly variable: string
  /** Names of the executable in `PATH`, in the order of preference. */
  readonly names: readonly string[]
  readonly install: string
}

const PROGRAMS = {
  chromium: {
    purpose: 'tests in a browser',
    variable: 'CHROMIUM',
    names: ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'],
    install: 'install chromium, or set CHROMIUM to its path',
  },
  redis: {
    purpose: 'tests with Redis',
    variable: 'REDIS_SERVER',
    names: ['redis-server', 'valkey-server'],
    install: 'install redis-server, or set REDIS_SERVER to its path',
  },
} as const satisfies Record<string, Program>

/** The path of an executable, or undefined if it is not installed. */
export function findProgram(name: keyof typeof PROGRAMS): string | undefined {
  const { variable, names } = PROGRAMS[name]
  const given = process.env[variable]
  if (given !== undefined && given !== '') return given
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  const paths = names.flatMap((each) => folders.map((folder) => join(folder, each)))
  return paths.find(isExecutable)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Global setup of vitest. */
export function setup(): void {
  for (const name of Object.keys(PROGRAMS) as (keyof typeof PROGRAMS)[]) {
    if (findProgram(name) !== undefined) continue
    const { purpose, install } = PROGRAMS[name]
    const line = `skipped: ${purpose} (${install})`
    if (process.env['TESTS_REQUIRE_PROGRAMS'] !== undefined) throw new Error(line)
    process.stdout.write(`${line}\n`)
  }
}

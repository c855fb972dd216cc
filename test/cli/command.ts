import { fileURLToPath } from 'node:url'
import { CCMCP, Child, type ChildOptions, ROOT } from '../stdio/child.js'

export const CLI = `${ROOT}dist/cli.js`
export const server = (name: string) =>
  fileURLToPath(new URL(`servers/${name}.mjs`, import.meta.url))
export const OFFER = server('offer')

export interface Outcome {
  code: number | null
  stdout: string
  stderr: string
}

/** Runs `./ccmcp` until it exits. */
export function ccmcp(
  args: readonly string[],
  input = '',
  options?: ChildOptions,
): Promise<Outcome> {
  return run(CCMCP, args, input, options)
}

/** Runs what `npx ccmcp` runs, without the launcher. */
export function cli(args: readonly string[], input = '', options?: ChildOptions): Promise<Outcome> {
  return run(process.execPath, [CLI, ...args], input, options)
}

async function run(
  command: string,
  args: readonly string[],
  input: string,
  options?: ChildOptions,
): Promise<Outcome> {
  const child = new Child(command, args, options)
  child.write(input)
  child.end()
  await child.closed()
  return { code: child.code, stdout: child.stdout.toString(), stderr: child.stderr }
}

import { homedir } from 'node:os'
import { join } from 'node:path'

/** The directory of the tokens: that of the user's configuration. Throws if the user has no home directory. */
export function tokenDirectory(env: NodeJS.ProcessEnv = process.env): string {
  const { XDG_CONFIG_HOME: xdg = '', APPDATA: windows = '' } = env
  const base = process.platform === 'win32' ? windows : xdg
  return join(base === '' ? join(homedir(), '.config') : base, 'ccmcp')
}

/** The file with the tokens of `ccmcp login`. */
export function tokenPath(directory = tokenDirectory()): string {
  return join(directory, 'tokens.json')
}

/** The token file, which the file tools of a server must not access; none if the user has no home directory. */
export function protectedTokens(): string[] {
  try {
    return [tokenPath()]
  } catch {
    return []
  }
}

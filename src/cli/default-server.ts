import { ccmcpServer } from '../bundled/ccmcp.js'
import type { Server } from '../index.js'
import { type StdioOptions, serveStdio } from '../stdio.js'
import { protectedTokens } from './token-path.js'

/** The limit required by seed document 004; the library's default is larger. */
export const MAX_MESSAGE = 1_048_576

/** The stdio options of a bundled server or module, before command-line options are applied. */
export function stdioDefaults(name: string): StdioOptions {
  return {
    greeting: `ccmcp: ${name} is waiting for an MCP client on stdin (one JSON message per line). "ccmcp demo" shows a server at work; press Ctrl-D to quit.`,
    logLevel: 'info',
    framing: 'auto',
  }
}

/** Serves the default server with default options; false if it cannot be created. */
export async function serveDefault(): Promise<boolean> {
  let server: Server
  try {
    server = ccmcpServer({ protectedFiles: protectedTokens() })
  } catch {
    return false
  }
  await serveStdio(server, { ...stdioDefaults(server.info.name), maxMessage: MAX_MESSAGE })
  return true
}

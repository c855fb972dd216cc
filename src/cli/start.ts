import { serveDefault } from './default-server.js'

/**
 * Whether this is `ccmcp` or `ccmcp serve` without options or variables, as
 * most hosts start it. It then loads neither the option tables nor the help
 * texts, which keeps the time to the first response short.
 */
function isPlainServe(args: readonly string[]): boolean {
  const hasVariables = Object.keys(process.env).some(
    (name) => name.startsWith('CCMCP_') && name !== 'CCMCP_WIRE',
  )
  return (args.length === 0 || (args.length === 1 && args[0] === 'serve')) && !hasVariables
}

async function start(args: readonly string[]): Promise<void> {
  try {
    if (isPlainServe(args) && (await serveDefault())) return
    // If the default server could not be created, this fails for the same reason, with its message.
    const { runCommandLine } = await import('./main.js')
    await runCommandLine(args)
  } catch (error) {
    const { reportError } = await import('./main.js')
    await reportError(error, args[0])
  }
}

// Not awaited: if a served module never finishes loading, Node would otherwise
// print a warning about an unsettled top-level await with a line of this file.
void start(process.argv.slice(2))

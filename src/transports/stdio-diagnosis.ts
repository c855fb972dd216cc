/** What is known about a server process that failed. */
export interface ProcessStatus {
  command: string
  /** The last bytes it wrote to stderr. */
  stderr: string
  /** Why it could not be started. */
  error?: Error
  code?: number | null
  signal?: NodeJS.Signals | null
  /** The first line on stdout that is not JSON. */
  firstInvalidLine?: string
  /** Whether it has sent a message. */
  hasSentMessage?: boolean
}

/** How a server process failed, the end of its stderr, the likely cause and what to do. */
export function explain(ending: ProcessStatus): string {
  const { command, stderr, error, code, signal, firstInvalidLine, hasSentMessage } = ending
  const lines = [`Server: ${command}`]
  if (error !== undefined) lines.push(`It could not be started: ${error.message}`)
  else if (code !== undefined)
    lines.push(
      signal === null || signal === undefined
        ? `It exited with code ${String(code)}`
        : `It was killed by ${signal}`,
    )
  else if (hasSentMessage === true) lines.push('It is running and has sent messages')
  else lines.push('It is running, but has sent no message, or has closed its output')
  if (firstInvalidLine !== undefined)
    lines.push(`First line on stdout that is not JSON: ${JSON.stringify(firstInvalidLine)}`)
  // Node's own frames of a stack trace say nothing about the server.
  const stderrLines = stderr
    .trim()
    .split('\n')
    .filter((line) => !/^\s+at .*\bnode:internal\/|^Node\.js v\d/.test(line))
  const tail = stderrLines.slice(-10)
  // The error line of a stack trace that is longer than what is shown.
  const cause = stderrLines
    .slice(0, -10)
    .findLast((line) => /^\w*Error\b|^\S*Exception\b/.test(line))
  if (cause !== undefined) tail.unshift(cause, '…')
  if (tail.length > 0 && tail[0] !== '')
    lines.push('Its last lines on stderr:', ...tail.map((line) => `  ${line}`))
  const advice = adviceFor(ending)
  if (advice !== undefined) lines.push(`Likely cause: ${advice}`)
  return lines.join('\n')
}

function adviceFor({
  stderr,
  error,
  code,
  firstInvalidLine,
  hasSentMessage,
}: ProcessStatus): string | undefined {
  if (error !== undefined && 'code' in error) {
    if (error.code === 'ENOENT')
      return `the command or the working directory does not exist. ${separated(error) ?? 'Use an absolute path: graphical programs often have a shorter PATH'}`
    if (error.code === 'EACCES')
      return 'the file is not executable. Make it executable, or start it with its interpreter'
  }
  if (firstInvalidLine !== undefined && /^content-(?:length|type)\s*:/i.test(firstInvalidLine)) {
    return 'the server uses Content-Length framing, which is not part of MCP. Connect with framing "content-length", or make the server send one JSON message per line'
  }
  if (
    /Cannot find (?:module|package)|ERR_MODULE_NOT_FOUND|can't open file|No such file or directory/i.test(
      stderr,
    )
  ) {
    return 'wrong path, or packages not installed. Check the path and install the packages of the server'
  }
  if (
    /unsupported engine|requires? node|node(?:\.js)? version|'node:\w+' does not provide an export named/i.test(
      stderr,
    )
  )
    return 'the server needs a newer version of Node'
  if (/^SyntaxError\b/m.test(stderr)) return 'a syntax error in the code of the server, shown above'
  if (firstInvalidLine !== undefined)
    return 'the server prints to stdout, which carries the protocol (console.log, a banner). Print to stderr instead'
  if (code === 0)
    return 'the command exits immediately. Is it the server, or a program that prints help?'
  if (code === undefined && hasSentMessage !== true)
    return 'it is still starting, or it is not an MCP server on stdio'
  return undefined
}

/** Advice for a command with spaces: its arguments are probably in it. */
function separated(error: Error): string | undefined {
  const { path, spawnargs = [] } = error as Error & { path?: string; spawnargs?: string[] } // set by spawn
  const [command = '', ...args] = path?.trim().split(/\s+/) ?? []
  // A path may have spaces.
  if (args.length === 0 || /[\\/]/.test(command)) return undefined
  const list = JSON.stringify([...args, ...spawnargs])
  return `Separate the command and its arguments: stdio(${JSON.stringify(command)}, ${list}), or no quotes on the command line`
}

/** What is known about a server process that does not work. */
export interface Ending {
  command: string
  /** The end of what it wrote to stderr. */
  stderr: string
  /** It could not be started. */
  error?: Error
  code?: number | null
  signal?: NodeJS.Signals | null
  /** The first line on stdout that was no JSON. */
  garbage?: string
  /** It has sent at least one message. */
  answered?: boolean
}

/** The facts about the end of a process, its likely cause and what to do, in a few lines. */
export function explain(ending: Ending): string {
  const { command, stderr, error, code, signal, garbage, answered } = ending
  const lines = [`Server: ${command}`]
  if (error !== undefined) lines.push(`It could not be started: ${error.message}`)
  else if (code !== undefined)
    lines.push(
      signal === null || signal === undefined
        ? `It exited with code ${String(code)}`
        : `It was ended by ${signal}`,
    )
  else if (answered === true) lines.push('It is running and has sent messages')
  else lines.push('It is running, but has sent no message, or has closed its output')
  if (garbage !== undefined)
    lines.push(`First line on stdout that is not JSON: ${JSON.stringify(garbage)}`)
  // Of a stack trace, Node's own part tells nothing about the server.
  const words = stderr
    .trim()
    .split('\n')
    .filter((line) => !/^\s+at .*\bnode:internal\/|^Node\.js v\d/.test(line))
  const tail = words.slice(-10)
  // Of a long stack trace, the line that says what it is about.
  const cause = words.slice(0, -10).findLast((line) => /^\w*Error\b|^\S*Exception\b/.test(line))
  if (cause !== undefined) tail.unshift(cause, '…')
  if (tail.length > 0 && tail[0] !== '')
    lines.push('Its last words on stderr:', ...tail.map((line) => `  ${line}`))
  const advice = adviceFor(ending)
  if (advice !== undefined) lines.push(`Likely: ${advice}`)
  return lines.join('\n')
}

function adviceFor({ stderr, error, code, garbage, answered }: Ending): string | undefined {
  if (error !== undefined && 'code' in error) {
    if (error.code === 'ENOENT')
      return 'the command, or its working folder, is not there. Give an absolute path; graphical programs have a short PATH'
    if (error.code === 'EACCES')
      return 'the file may not be executed. Make it executable, or start it through its interpreter'
  }
  if (garbage !== undefined && /^content-(?:length|type)\s*:/i.test(garbage)) {
    return 'the server speaks Content-Length framing, which MCP does not have. Connect with framing "content-length", or make it send one JSON message a line'
  }
  if (
    /Cannot find (?:module|package)|ERR_MODULE_NOT_FOUND|can't open file|No such file or directory/i.test(
      stderr,
    )
  ) {
    return 'a wrong path, or packages that are not installed. Check the path and run the install step of the server'
  }
  if (
    /unsupported engine|requires? node|node(?:\.js)? version|'node:\w+' does not provide an export named/i.test(
      stderr,
    )
  )
    return 'the server needs a newer Node than the one that started it'
  if (/^SyntaxError\b/m.test(stderr))
    return 'a mistake in the code of the server: its place and the error are above'
  if (garbage !== undefined)
    return 'the server prints to stdout, which carries the protocol (console.log, a banner). Let it print to stderr instead'
  if (code === 0) return 'the command ends by itself; is it the server, or a tool that prints help?'
  if (code === undefined && answered !== true)
    return 'it is still starting, or it is no MCP server on stdio'
  return undefined
}

import { ccmcpServer } from '../bundled/ccmcp.js'
import type { ServerOptions } from '../index.js'
import { type Framing, type LogLevel, serveStdio } from '../stdio.js'
import { type Option, UsageError, describeOptions, readOptions } from './options.js'
import { HTTP_OPTIONS } from './http-options.js'

const OPTIONS = {
  framing: { value: ['auto', 'lines', 'content-length'], about: 'how messages are told apart (default auto: as the client does)' },
  'max-message': { value: 'BYTES', about: 'the longest message taken in (default 1048576)' },
  'log-level': { value: ['debug', 'info', 'warning', 'error'], about: 'the lowest level logged to stderr (default info)' },
  'unsupported-revision': {
    value: ['negotiate', 'echo', 'reject'],
    about: 'what to do with an unknown protocol revision (default negotiate)',
  },
  'invalid-arguments': { value: ['result', 'protocol'], about: 'answer bad arguments with a result or error -32602 (default result)' },
  'unexpected-errors': { value: ['result', 'protocol'], about: 'answer a failing tool with a result or error -32603 (default result)' },
  root: { value: 'DIR', about: 'the directory that the file tools work in (default the working directory)' },
  'read-only': { about: 'leave write_file out' },
  persist: { value: 'FILE', about: 'keep registered tools in this file' },
  tools: { value: 'NAMES', about: 'only these tools, with commas between them' },
  'exclude-tools': { value: 'NAMES', about: 'all tools but these' },
  ...HTTP_OPTIONS,
  help: { about: 'show this help' },
} satisfies Record<string, Option>

const HELP = `ccmcp serve: an MCP server with the tools hello, add and echo, on stdin and stdout, or over HTTP

Usage: ccmcp serve [options]      (the word "serve" may be left out)

${describeOptions(OPTIONS)}
`

export async function serve(args: readonly string[]): Promise<void> {
  const [first = ''] = args
  const kind = first.startsWith('-') || first === '' ? 'ccmcp' : first
  const given = readOptions(kind === first ? args.slice(1) : args, OPTIONS)
  if (given.has('help')) {
    process.stdout.write(HELP)
    return
  }
  const options = {
    greeting: 'ccmcp: waiting for an MCP client on stdin, one JSON message a line. "ccmcp demo" shows the server at work; Ctrl-D ends it.',
    maxMessage: bytes(given.get('max-message') ?? '1048576'),
    // `readOptions` has checked each of these against the option's values.
    logLevel: (given.get('log-level') ?? 'info') as LogLevel,
    framing: (given.get('framing') ?? 'auto') as Framing,
  }
  const choices = {
    ...(given.has('unsupported-revision')
      ? { unsupportedRevision: given.get('unsupported-revision') as NonNullable<ServerOptions['unsupportedRevision']> }
      : {}),
    ...(given.has('invalid-arguments')
      ? { invalidArguments: given.get('invalid-arguments') as NonNullable<ServerOptions['invalidArguments']> }
      : {}),
    ...(given.has('unexpected-errors')
      ? { unexpectedErrors: given.get('unexpected-errors') as NonNullable<ServerOptions['unexpectedErrors']> }
      : {}),
  }
  const names = (option: string) => given.get(option)?.split(',')
  const [root, persist, tools, excludeTools] = [
    given.get('root') ?? process.env['CCMCP_ROOT'],
    given.get('persist'),
    names('tools'),
    names('exclude-tools'),
  ]
  const server =
    kind === 'grammar'
      ? (await import('../bundled/grammar.js')).grammarServer(choices)
      : kind === 'text'
        ? (await import('../bundled/text.js')).textServer(choices)
        : ccmcpServer({
            ...choices,
            readOnly: given.has('read-only'),
            ...(root === undefined ? {} : { root }),
            ...(persist === undefined ? {} : { persist }),
            ...(tools === undefined ? {} : { tools }),
            ...(excludeTools === undefined ? {} : { excludeTools }),
          })
  // Loaded only where it is needed: what comes before the first answer counts.
  if (given.has('http')) return (await import('./serve-http.js')).serveHttp(server, given, options)
  await serveStdio(server, options)
}

function bytes(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value) || value < 1)
    throw new UsageError(`--max-message must be a number of bytes, not ${JSON.stringify(text)}`)
  return value
}

import { closeSync, openSync, readSync } from 'node:fs'
import type { Connection } from '../check/connection.js'
import { httpTarget } from '../check/http-target.js'
import type { LiveTarget } from '../check/live.js'
import { ProcessConnection } from '../check/process-connection.js'
import { withAuthorization } from '../transports/http/client/authorizer.js'
import { type SendRequest, followRedirects } from '../transports/http/client/http-request.js'
import { nodeRequest } from '../transports/http/client/node-request.js'
import { httpAccess, isUrl } from './http-server.js'
import { type Arguments, UsageError } from './options.js'
import { BUNDLED } from './servers.js'
import { serverCommand } from './target.js'

/** Characters of stderr that an error shows. */
const MAX_STDERR = 2000

/** Whether an argument names a capture: a file that is neither a module nor a bundled server. */
export function isCapture(word: string): boolean {
  if (isUrl(word) || Object.hasOwn(BUNDLED, word)) return false
  if (/\.[cm]?[jt]sx?$/.test(word)) return startsLikeRecord(word)
  return true
}

function startsLikeRecord(path: string): boolean {
  try {
    const descriptor = openSync(path, 'r')
    const bytes = new Uint8Array(16)
    readSync(descriptor, bytes)
    closeSync(descriptor)
    return /^\s*\{"type"/.test(new TextDecoder().decode(bytes))
  } catch {
    return false
  }
}

/** The server that is probed. */
export function liveTarget(
  args: Arguments,
  word: string | undefined,
  timeout: number,
): LiveTarget & { label: string } {
  if (args.command === undefined && word !== undefined && isUrl(word))
    return urlTarget(args, word, timeout)
  for (const option of ['header', 'token-env'])
    if (args.values.has(option)) throw new UsageError(`--${option} is for a server at a URL`)
  const command = serverCommand(args, word)
  const env = { ...process.env }
  delete env['CCMCP_WIRE']
  return {
    transport: 'stdio',
    label: args.command === undefined ? (word ?? '') : command.join(' '),
    open: (recording) => new ProcessConnection(command, env, recording, timeout),
    explain: (connection) => processFailure(connection),
  }
}

function processFailure(connection: Connection): string {
  const reason = connection.ended ?? 'it did not respond to initialize'
  const stderr = connection instanceof ProcessConnection ? connection.stderr.trim() : ''
  return stderr === '' ? reason : `${reason}; its stderr ends with:\n${stderr.slice(-MAX_STDERR)}`
}

function urlTarget(
  { values }: Arguments,
  word: string,
  timeout: number,
): LiveTarget & { label: string } {
  const { url, headers, authorizer, secrets, explain } = httpAccess(word, values)
  const prepare = (send: SendRequest) =>
    followRedirects(withAuthorization(send, authorizer, secrets))
  const target = httpTarget({ url, request: nodeRequest(), prepare, headers, timeout, explain })
  // Its transport may change: it is not copied.
  return Object.assign(target, { label: `${url.origin}${url.pathname}` })
}

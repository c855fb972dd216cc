import { toBase64Url } from '../../jsonrpc/base64.js'
import type { Caller } from '../../server/call.js'
import { INVALID_PARAMS, RpcError } from '../../jsonrpc/errors.js'

/** 159 random bits: an id may be all that a caller needs to see a task. */
const BYTES = 20
const LENGTH = Math.ceil((BYTES * 4) / 3)

export function newTaskId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(BYTES))
  // The first character is a letter: on the command line, a hyphen would begin an option.
  bytes[0] = (bytes[0] ?? 0) & 0x7f
  return toBase64Url(bytes)
}

/** The name under which a task is stored: a digest, so that who reads the store does not learn the id. */
export async function nameOf(taskId: string): Promise<string> {
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(taskId))
  return toBase64Url(new Uint8Array(hash))
}

/** Names a task in logs and telemetry. */
export function nameInLogs(name: string): string {
  return `task-${name.slice(0, 12)}`
}

/** Whether it may be an id that was made here. */
export function isTaskId(value: unknown): value is string {
  return typeof value === 'string' && value.length === LENGTH
}

/** The same for an id that is unknown, has expired or belongs to another principal. */
export function unknownTask(): RpcError {
  return new RpcError(
    INVALID_PARAMS,
    'Unknown task: "taskId" names no task of this caller, or the task has expired',
  )
}

/** The owner of tasks whose callers are not authenticated: the id of such a task is all that protects it. */
export const ANYBODY = ''

export function ownerOf({ principal }: Caller): string {
  return principal === undefined ? ANYBODY : `principal ${principal.id}`
}

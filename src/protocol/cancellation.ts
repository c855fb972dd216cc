import { type Id, type Notification, exactInteger } from '../jsonrpc/message.js'
import { copyString } from '../jsonrpc/budget.js'

/** Maximum length of a cancellation reason: a handler may hold it for long. */
const MAX_REASON = 1024

/** The request that a `notifications/cancelled` names; undefined if it names none. */
export function parseCancellation({
  params,
  frame,
}: Notification): { id: Id; reason: string | undefined } | undefined {
  const { requestId, reason } = params ?? {}
  const id =
    typeof requestId === 'number'
      ? exactInteger(requestId, frame, ['params', 'requestId'])
      : requestId
  if (typeof id !== 'string' && typeof id !== 'number' && typeof id !== 'bigint') return undefined
  return {
    id,
    reason: typeof reason === 'string' ? copyString(reason.slice(0, MAX_REASON)) : undefined,
  }
}

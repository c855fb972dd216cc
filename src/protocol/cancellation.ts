import { type Id, type Notification, exactInteger } from '../jsonrpc/message.js'
import { detached } from '../jsonrpc/weight.js'

/** A handler may hold it for long after it was cancelled. */
const MAX_REASON = 1024

/** Which request a `notifications/cancelled` is about; undefined where it does not say so. */
export function cancelled({
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
    reason: typeof reason === 'string' ? detached(reason.slice(0, MAX_REASON)) : undefined,
  }
}

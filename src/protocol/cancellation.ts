import { type Id, type Notification, exactInteger } from '../jsonrpc/message.js'

/** Which request a `notifications/cancelled` is about; undefined where it does not say so. */
export function cancelled({ params, frame }: Notification): { id: Id; reason: string | undefined } | undefined {
  const { requestId, reason } = params ?? {}
  const id = typeof requestId === 'number' ? exactInteger(requestId, frame, ['params', 'requestId']) : requestId
  if (typeof id !== 'string' && typeof id !== 'number' && typeof id !== 'bigint') return undefined
  return { id, reason: typeof reason === 'string' ? reason : undefined }
}

import { type Message, type SentMessage, parseMessage } from '../../../jsonrpc/message.js'

export function isNotification(
  message: SentMessage | undefined,
  method: string,
): message is Extract<SentMessage, { kind: 'notification' }> {
  return message?.kind === 'notification' && message.method === method
}

const HANDSHAKE: ReadonlySet<string> = new Set([
  'server/discover',
  'initialize',
  'notifications/initialized',
])

/**
 * Whether nobody waits for what is sent: for a notification, or for a handshake that is `isUnattended`. The server waits
 * for the response to its request.
 */
export function isBackground(
  message: SentMessage | undefined,
  isUnattended: (() => boolean) | undefined,
): boolean {
  if (message === undefined) return true
  if (message.kind === 'response') return false
  if (HANDSHAKE.has(message.method)) return isUnattended?.() === true
  return message.kind === 'notification'
}

/** Also one that is not valid: the request is rejected for it. */
export function isResponse(message: Message): boolean {
  return message.kind === 'response' || (message.kind === 'invalid' && message.noResponse)
}

/** For text that is sent without its message. */
export function sentMessage(frame: string): SentMessage | undefined {
  const message = parseMessage(frame)
  if (message.kind === 'request' || message.kind === 'notification') return message
  return message.kind === 'response' ? { kind: 'response', id: message.id } : undefined
}

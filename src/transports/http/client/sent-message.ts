import { type Message, type SentMessage, parseMessage } from '../../../jsonrpc/message.js'

export function isNotification(
  message: SentMessage | undefined,
  method: string,
): message is Extract<SentMessage, { kind: 'notification' }> {
  return message?.kind === 'notification' && message.method === method
}

/**
 * Whether nobody waits for a message that gets no response. Calls wait for `notifications/initialized`, and the server
 * for the response to its request.
 */
export function isBackground(message: SentMessage | undefined): boolean {
  return message?.kind !== 'response' && !isNotification(message, 'notifications/initialized')
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

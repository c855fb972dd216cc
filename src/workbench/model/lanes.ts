import type { Row } from '../../capture/analysis.js'
import { METHODS } from '../../protocol/methods.js'

/** The lanes of the timeline, from top to bottom. */
export const LANES = ['client', 'server', 'notifications', 'streams', 'tasks', 'auth'] as const
export type Lane = (typeof LANES)[number]

const AUTH_PATH = /\/\.well-known\/|\/(?:authorize|token|register|revoke|oauth2?)(?:$|[/?\s])/

/** The lane of a row; undefined if it is not on the timeline, such as a blank line. */
export function laneOf({ kind, dir, method = '', operation, text }: Row): Lane | undefined {
  if (kind === 'event')
    return method.startsWith('http') && AUTH_PATH.test(text) ? 'auth' : undefined
  const requested = operation?.method ?? method
  if (METHODS.get(requested)?.stream === true) return 'streams'
  if (/^(?:notifications\/)?tasks(?:\/|$)/.test(requested) || operation?.hasTask === true)
    return 'tasks'
  if (kind === 'notification') return 'notifications'
  if (kind !== 'request' && kind !== 'response' && kind !== 'unanswered') return undefined
  const requester = operation?.dir ?? dir
  return requester === 'out' ? 'server' : 'client'
}

import type { Row } from '../../capture/analysis.js'
import { METHODS } from '../../protocol/methods.js'

/** The lanes of the timeline, from top to bottom. */
export const LANES = ['client', 'server', 'notifications', 'streams', 'tasks', 'auth'] as const
export type Lane = (typeof LANES)[number]

const AUTH_PATH = /\/\.well-known\/|\/(?:authorize|token|register|revoke|oauth2?)(?:$|[/?])/

/** The lane of a row; undefined if it is not on the timeline, such as a blank line. */
export function laneOf(row: Row): Lane | undefined {
  const { kind, dir, method = '', operation } = row
  if (kind === 'http') return httpLane(row)
  const requested = operation?.method ?? method
  if (METHODS.get(requested)?.stream === true) return 'streams'
  if (/^(?:notifications\/)?tasks(?:\/|$)/.test(requested) || operation?.hasTask === true)
    return 'tasks'
  if (kind === 'notification') return 'notifications'
  if (kind !== 'request' && kind !== 'response' && kind !== 'unanswered') return undefined
  const requester = operation?.dir ?? dir
  return requester === 'out' ? 'server' : 'client'
}

/** The head of an HTTP request or response: of a login, or of a stream that the client opens. */
function httpLane({ method, target = '', text }: Row): Lane | undefined {
  if (AUTH_PATH.test(target) || /^40[13]\b/.test(text)) return 'auth'
  return method === 'GET' ? 'streams' : undefined
}

import type { Params } from '../../jsonrpc/message.js'
import type { Asking, Situation } from '../ask.js'
import { Conversation } from './conversation.js'
import { Rounds } from './rounds.js'

/** How a call asks in its revision. */
export function askingOf(situation: Situation): Asking {
  return situation.revision.asking === 'request'
    ? new Conversation(situation)
    : new Rounds(situation, undefined, {})
}

/** Takes up a call that was answered with questions. */
export function resume(situation: Situation, params: Params): Promise<Asking> {
  return Rounds.resume(situation, params)
}

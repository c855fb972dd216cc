import type { Params } from '../../jsonrpc/message.js'
import type { Asking, AskContext } from '../ask.js'
import { AskByRequest } from './ask-by-request.js'
import { AskByResult } from './ask-by-result.js'

/** How a call asks in its revision. */
export function askingOf(situation: AskContext): Asking {
  return situation.revision.asking === 'request'
    ? new AskByRequest(situation)
    : new AskByResult(situation, undefined, {})
}

/** Takes up a call that was answered with questions. */
export function resume(situation: AskContext, params: Params): Promise<Asking> {
  return AskByResult.resume(situation, params)
}

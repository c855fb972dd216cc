import type { Params } from '../../jsonrpc/message.js'
import type { Asking, AskContext } from '../ask.js'
import { AskByRequest } from './ask-by-request.js'
import { AskByResult } from './ask-by-result.js'

/** How a call asks its client in its revision. */
export function askingOf(context: AskContext): Asking {
  return context.revision.asking === 'request'
    ? new AskByRequest(context)
    : new AskByResult(context, undefined, {})
}

/** Resumes a call that was answered with `input_required`. */
export function resume(context: AskContext, params: Params): Promise<Asking> {
  return AskByResult.resume(context, params)
}

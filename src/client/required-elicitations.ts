import { RpcError } from '../jsonrpc/errors.js'
import { isObject } from '../jsonrpc/message.js'
import { URL_ELICITATION_REQUIRED } from '../protocol/errors.js'
import type { ElicitParams } from '../protocol/model.js'

/** A URL that a user must open before a server accepts a request. */
export interface UrlElicitation extends ElicitParams {
  mode: 'url'
  url: string
  /** `notifications/elicitation/complete` has the same id. */
  elicitationId: string
}

/**
 * The URL elicitations that an error requires (−32042): the server has not executed the request, and it can be sent again
 * when the user has completed all of them. Empty for every other error, and if one of them is invalid.
 * https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#url-elicitation-required-error
 */
export function requiredElicitations(error: unknown): UrlElicitation[] {
  if (!(error instanceof RpcError) || error.code !== URL_ELICITATION_REQUIRED) return []
  const elicitations = isObject(error.data) ? error.data['elicitations'] : undefined
  if (!Array.isArray(elicitations) || !elicitations.every(isUrlElicitation)) return []
  return elicitations
}

function isUrlElicitation(value: unknown): value is UrlElicitation {
  if (!isObject(value)) return false
  const { mode, message, url, elicitationId } = value
  return (
    mode === 'url' &&
    typeof message === 'string' &&
    typeof url === 'string' &&
    typeof elicitationId === 'string'
  )
}

import { type Message, type Request, isObject } from '../../jsonrpc/message.js'
import { truncateJson } from '../../jsonrpc/truncate.js'
import { CLIENT_CAPABILITIES, PROTOCOL_VERSION } from '../../protocol/meta.js'
import { identify, undescribed } from '../../protocol/revisions/identify.js'
import { type Revision, byHandshake, bySelfDescription } from '../../protocol/revisions/index.js'
import { mismatch } from './mirrors.js'

/* Two kinds of clients call the same URL: those that shake hands, and those whose requests describe themselves. */

/** Whether the version header names a revision in which requests describe themselves. */
export function selfDescribingNamed(version: string | undefined): boolean {
  return bySelfDescription.some(({ id }) => id === version)
}

export function handshakeNamed(version: string | undefined): Revision | undefined {
  return byHandshake.find(({ id }) => id === version)
}

/** Whether a message has anything of a description, be it whole or not. */
export function describes(message: Message): boolean {
  if (message.kind !== 'request' && message.kind !== 'notification') return false
  const meta = message.params?.['_meta']
  return isObject(meta) && (PROTOCOL_VERSION in meta || CLIENT_CAPABILITIES in meta)
}

/**
 * Throws where a request is not described well enough to be served: first where
 * header and body disagree, then where the body is incomplete, then where it
 * names a revision that is not served this way.
 */
export function checkDescription({ method, params }: Request, version: string | undefined): void {
  const meta = params?.['_meta']
  const said = isObject(meta) ? meta[PROTOCOL_VERSION] : undefined
  if (typeof said === 'string') {
    if (version === undefined)
      throw mismatch(`the header MCP-Protocol-Version is missing; it must be ${truncateJson(said)}`)
    if (version !== said)
      throw mismatch(
        `the header MCP-Protocol-Version does not say ${truncateJson(said)}, as the body does`,
      )
  }
  if (identify(params) === undefined) throw undescribed(method)
}

import { type Message, type Request, isObject } from '../../jsonrpc/message.js'
import { truncateJson } from '../../jsonrpc/truncate.js'
import { CLIENT_CAPABILITIES, PROTOCOL_VERSION } from '../../protocol/meta.js'
import { readRequestMeta, missingRequestMeta } from '../../protocol/revisions/request-meta.js'
import {
  type Revision,
  handshakeRevisions,
  statelessRevisions,
} from '../../protocol/revisions/index.js'
import { mismatch } from './routing-headers.js'

/* Two kinds of clients call the same URL: those that shake hands, and those whose requests describe themselves. */

/** Whether the version header names a revision in which requests describe themselves. */
export function isStatelessVersion(version: string | undefined): boolean {
  return statelessRevisions.some(({ id }) => id === version)
}

export function handshakeRevision(version: string | undefined): Revision | undefined {
  return handshakeRevisions.find(({ id }) => id === version)
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
export function checkRequestMeta(request: Request, version: string | undefined): void {
  const meta = request.params?.['_meta']
  const said = isObject(meta) ? meta[PROTOCOL_VERSION] : undefined
  if (typeof said === 'string') {
    if (version === undefined)
      throw mismatch(`the header MCP-Protocol-Version is missing; it must be ${truncateJson(said)}`)
    if (version !== said)
      throw mismatch(
        `the header MCP-Protocol-Version does not say ${truncateJson(said)}, as the body does`,
      )
  }
  if (readRequestMeta(request) === undefined) throw missingRequestMeta(request.method)
}

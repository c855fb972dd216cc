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

/* Clients with an `initialize` handshake and clients with stateless requests use the same URL. */

/** Whether the header MCP-Protocol-Version names a stateless revision. */
export function isStatelessVersion(version: string | undefined): boolean {
  return statelessRevisions.some(({ id }) => id === version)
}

export function handshakeRevision(version: string | undefined): Revision | undefined {
  return handshakeRevisions.find(({ id }) => id === version)
}

/** Whether a message has any `_meta` key of a stateless request, even if others are missing. */
export function hasRequestMeta(message: Message): boolean {
  if (message.kind !== 'request' && message.kind !== 'notification') return false
  const meta = message.params?.['_meta']
  return isObject(meta) && (PROTOCOL_VERSION in meta || CLIENT_CAPABILITIES in meta)
}

/** Throws where the `_meta` of a stateless request cannot be served: header and body disagree, a key is missing, or the revision is not supported. */
export function checkRequestMeta(request: Request, version: string | undefined): void {
  const meta = request.params?.['_meta']
  const named = isObject(meta) ? meta[PROTOCOL_VERSION] : undefined
  if (typeof named === 'string') {
    if (version === undefined)
      throw mismatch(
        `the header MCP-Protocol-Version is missing; it must be ${truncateJson(named)}`,
      )
    if (version !== named)
      throw mismatch(
        `the header MCP-Protocol-Version must be ${truncateJson(named)}, as in the body`,
      )
  }
  if (readRequestMeta(request) === undefined) throw missingRequestMeta(request.method)
}

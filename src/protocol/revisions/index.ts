import { revision20241105 } from './2024-11-05.js'
import { revision20250326 } from './2025-03-26.js'
import { revision20250618 } from './2025-06-18.js'
import { revision20251125 } from './2025-11-25.js'
import { revision20260728 } from './2026-07-28.js'
import type { Revision } from './revision.js'

/** Every revision that is served, oldest first. */
export const revisions: readonly Revision[] = [
  revision20241105,
  revision20250326,
  revision20250618,
  revision20251125,
  revision20260728,
]

/** The revisions with an initialize handshake, and those with stateless requests. */
export const handshakeRevisions = revisions.filter(({ lifecycle }) => lifecycle === 'handshake')
export const statelessRevisions = revisions.filter(({ lifecycle }) => lifecycle === 'stateless')

/** The revision with this id, if it has an initialize handshake. */
export function handshakeRevision(id: unknown): Revision | undefined {
  return handshakeRevisions.find((revision) => revision.id === id)
}

/** The revision with this id, if it has stateless requests. */
export function statelessRevision(id: unknown): Revision | undefined {
  return statelessRevisions.find((revision) => revision.id === id)
}

/** The newest revision with a handshake: the response to an unknown one. */
export const newestHandshakeRevision: Revision = revision20251125
/**
 * The revision of an HTTP request without a version header.
 * https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#protocol-version-header
 */
export const defaultHttpRevision: Revision = revision20250326
export const newest: Revision = revision20260728

export type { Revision } from './revision.js'

import { revision20241105 } from './2024-11-05.js'
import { revision20250326 } from './2025-03-26.js'
import { revision20250618 } from './2025-06-18.js'
import { revision20251125 } from './2025-11-25.js'
import type { Revision } from './revision.js'

/** Every revision that is served, oldest first. */
export const revisions: readonly Revision[] = [revision20241105, revision20250326, revision20250618, revision20251125]

/** The newest revision that begins with a handshake: what an unknown proposal is answered with. */
export const newestHandshake: Revision = revision20251125

export function revisionOf(id: unknown): Revision | undefined {
  return revisions.find((revision) => revision.id === id)
}

/** Whether any served revision knows a request of that name. */
export function isRequestMethod(method: string): boolean {
  return revisions.some((revision) => revision.methods.clientRequests.includes(method))
}

export type { Revision } from './revision.js'

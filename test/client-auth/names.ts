import dns from 'node:dns/promises'
import { afterAll, beforeAll, vi } from 'vitest'

/** The tests of this file resolve no host names but these. */
export function resolveOnly(addresses: Readonly<Record<string, readonly string[]>> = {}): void {
  beforeAll(() => {
    vi.spyOn(dns, 'lookup').mockImplementation((host: string) =>
      // The signature that remains of several is the one for `all: true`.
      Promise.resolve((addresses[host] ?? []).map((address) => ({ address, family: 0 })) as never),
    )
  })
  afterAll(() => void vi.restoreAllMocks())
}

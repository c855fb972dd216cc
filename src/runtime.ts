/*
 * What Node has and other runtimes may lack. The layers that run anywhere (server/ and below) ask for it here, and have
 * a fallback if it is missing.
 */

/** Runs something in the next turn of the event loop, after the I/O that is ready now. */
export const nextTurn: (run: () => void) => unknown =
  typeof setImmediate === 'function' ? setImmediate : (run) => setTimeout(run, 0)

/** A value that code can read which runs within `run`, also after it has awaited something. */
export interface AsyncStorage<Store> {
  run<Result>(store: Store, run: () => Result): Result
  getStore(): Store | undefined
}

/** Undefined if the runtime has no AsyncLocalStorage. */
export function asyncStorage<Store>(): AsyncStorage<Store> | undefined {
  const hooks = globalThis.process?.getBuiltinModule?.('node:async_hooks')
  return hooks === undefined ? undefined : new hooks.AsyncLocalStorage<Store>()
}

/** Whether this is Node itself: Bun and Deno have `process.versions.node` as well. */
export function isNode(): boolean {
  const { node, bun, deno } = (globalThis.process?.versions ?? {}) as Partial<
    Record<string, string>
  >
  return node !== undefined && bun === undefined && deno === undefined
}

/** The addresses of a host name; none if it has none, or if the runtime cannot tell. */
export async function addressesOf(host: string): Promise<string[]> {
  const dns = globalThis.process?.getBuiltinModule?.('node:dns/promises')
  try {
    const found = await dns?.lookup(host.replace(/^\[|\]$/g, ''), { all: true })
    return (found ?? []).map(({ address }) => address)
  } catch {
    return []
  }
}

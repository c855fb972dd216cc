/*
 * What Node has and other runtimes may lack. The layers that run anywhere (server/ and below) ask for it here, and have
 * a fallback if it is missing.
 */

/**
 * Runs `check`. An error that is thrown here gets the stack of the call of `api`, a function on the stack: its first
 * line is the user's, which Node prints. An error of other code keeps its own.
 */
export function atCallOf<Result>(api: unknown, check: () => Result): Result {
  try {
    return check()
  } catch (error) {
    const here = folderOf(new Error().stack)
    if (error instanceof Error && here !== undefined && folderOf(error.stack) === here) {
      // `api` is one of our functions; the types of Node want one that returns something else
      Error.captureStackTrace?.(error, api as () => void)
    }
    throw error
  }
}

/** The folder of the file that the first line of a stack names. */
function folderOf(stack: string | undefined): string | undefined {
  return /^ +at (?:.*\()?(.*[\\/])[^\\/]+$/m.exec(stack ?? '')?.[1]
}

/** Runs something in the next turn of the event loop, after the I/O that is ready now. */
export const nextTurn: (run: () => void) => unknown =
  typeof setImmediate === 'function' ? setImmediate : (run) => setTimeout(run, 0)

/** Lets the process exit while this timer is active, if the runtime has processes. Returns the timer. */
export function unref<Timer>(timer: Timer): Timer {
  ;(timer as { unref?: () => void }).unref?.()
  return timer
}

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

/** Whether this is Node itself: Bun, Deno and Cloudflare Workers have `process.versions.node` as well. */
export function isNode(): boolean {
  const { navigator } = globalThis as { navigator?: { userAgent?: string } }
  if (navigator?.userAgent === 'Cloudflare-Workers') return false
  const { node, bun, deno } = (globalThis.process?.versions ?? {}) as Partial<
    Record<string, string>
  >
  return node !== undefined && bun === undefined && deno === undefined
}

/** A hint for a failed `fetch` in a browser, which does not report the reason; empty elsewhere, and for other errors. */
export function corsHint(error: Error): string {
  const { location } = globalThis as { location?: { origin?: string } }
  const opaque = error instanceof TypeError && error.cause === undefined
  return opaque && location?.origin !== undefined
    ? ` (a browser does not say why; the server may be unreachable, or CORS may not allow requests from the origin ${location.origin})`
    : ''
}

/** The addresses of a host name, or why there are none; no addresses if the runtime cannot tell. */
export async function addressesOf(host: string): Promise<string[] | Error> {
  const dns = globalThis.process?.getBuiltinModule?.('node:dns/promises')
  try {
    const found = await dns?.lookup(host.replace(/^\[|\]$/g, ''), { all: true })
    return (found ?? []).map(({ address }) => address)
  } catch (error) {
    return error instanceof Error ? error : []
  }
}

/** A function that decompresses Brotli, up to a number of bytes beyond which it throws; undefined if there is none (browsers). */
export function brotliDecoder(): ((bytes: Uint8Array, maxBytes: number) => Uint8Array) | undefined {
  const zlib = globalThis.process?.getBuiltinModule?.('node:zlib')
  if (zlib === undefined) return undefined
  // Returns what a truncated body contains instead of throwing.
  const finishFlush = zlib.constants.BROTLI_OPERATION_FLUSH
  return (bytes, maxBytes) =>
    zlib.brotliDecompressSync(bytes, { finishFlush, maxOutputLength: Math.max(1, maxBytes) })
}

/**
 * Undefined if it is not a URL. `URL.canParse` cannot be used: after some thousand calls, that of Node 20 and 22 returns
 * false for host names with letters other than ASCII.
 */
export function parseUrl(text: string, base?: string | URL): URL | undefined {
  try {
    return new URL(text, base)
  } catch {
    return undefined
  }
}

/** The functions to call when a signal fires, and the listener that calls them. */
interface Waiting {
  readonly functions: Set<() => void>
  fired(): void
}

const waiting = new WeakMap<AbortSignal, Waiting>()

/**
 * Calls a function when a signal fires; returns a function that ends this. However many there are, the signal has one
 * listener: Node 20 prints a warning for more than ten, and a user may pass one signal to many calls.
 */
export function onAbort(signal: AbortSignal, run: () => void): () => void {
  const { functions, fired } = waiting.get(signal) ?? listen(signal)
  // The same function may be given twice.
  const own = () => run()
  functions.add(own)
  return () => {
    if (!functions.delete(own) || functions.size > 0) return
    signal.removeEventListener('abort', fired)
    waiting.delete(signal)
  }
}

function listen(signal: AbortSignal): Waiting {
  const functions = new Set<() => void>()
  const fired = () => {
    for (const run of functions) run()
  }
  const listening = { functions, fired }
  waiting.set(signal, listening)
  signal.addEventListener('abort', fired, { once: true })
  return listening
}

/** The ways in which a user's function can fail. */
export const MODES = {
  throws: () => {
    throw new Error('boom')
  },
  rejects: () => Promise.reject(new Error('boom')),
  'returns a thenable that throws': () => ({
    then() {
      throw new Error('boom')
    },
  }),
  'returns an object whose `then` getter throws': () => ({
    get then(): never {
      throw new Error('boom')
    },
  }),
  'never settles': () => new Promise(() => {}),
} as const satisfies Record<string, () => unknown>

export type Mode = keyof typeof MODES

/** A user's function of any type, which fails as its mode says. */
export interface Hook {
  (...args: readonly unknown[]): never
  /** Resolves when it has been called. */
  readonly called: Promise<void>
  readonly mode: Mode
}

export function hookOf(mode: Mode): Hook {
  let call = () => {}
  const called = new Promise<void>((resolve) => {
    call = resolve
  })
  const hook = () => {
    call()
    return MODES[mode]() as never
  }
  return Object.assign(hook, { called, mode })
}

/** One kind of user function, and the outcome of a request when it fails. */
export interface Row {
  readonly name: string
  /** Uses the function; resolves with the outcome of the request. */
  run(hook: Hook): Promise<string>
  readonly fails: string
  /** The outcome if the function never settles. */
  readonly never: string
}

export const row = (name: string, fails: string, never: string, run: Row['run']): Row => ({
  name,
  fails,
  never,
  run,
})

export const turn = () => new Promise((resolve) => setImmediate(resolve))

/** The outcome of a request. If the hook never settles and the request does not end without it, `free` must end the request. */
export async function outcome(
  promise: Promise<unknown>,
  hook: Hook,
  free: () => unknown = () => {},
): Promise<string> {
  const words = promise.then(wordsOf, (error: unknown) => wordsOf(error))
  if (hook.mode !== 'never settles') return await words
  const settled: string[] = []
  void words.then((each) => settled.push(each))
  await Promise.race([hook.called, words])
  for (let turns = 0; turns < 50 && settled.length === 0; turns++) await turn()
  if (settled.length === 0) await free()
  return await words
}

function wordsOf(value: unknown): string {
  if (value instanceof Error)
    return 'code' in value && typeof value.code === 'number'
      ? `error ${String(value.code)}`
      : `${value.name}: ${value.message.split('\n', 1)[0]}`
  if (typeof value === 'object' && value !== null && 'status' in value)
    return `HTTP ${String(value.status)}`
  return typeof value === 'object' && value !== null && 'isError' in value && value.isError === true
    ? 'isError'
    : 'result'
}

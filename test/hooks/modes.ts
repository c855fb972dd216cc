/** The ways in which a function that a user hands in can fail. */
export const MODES = {
  throws: () => {
    throw new Error('boom')
  },
  rejects: () => Promise.reject(new Error('boom')),
  'gives a thenable that throws': () => ({
    then() {
      throw new Error('boom')
    },
  }),
  'gives a `then` that cannot be read': () => ({
    get then(): never {
      throw new Error('boom')
    },
  }),
  'never settles': () => new Promise(() => {}),
} as const satisfies Record<string, () => unknown>

export type Mode = keyof typeof MODES

/** Stands for any function of a user: whatever its type says, it does what its mode says. */
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

/** One function that users hand in: what its caller gets when it fails. */
export interface Row {
  readonly name: string
  /** Uses it, and tells what came of the request in a few words. */
  run(hook: Hook): Promise<string>
  readonly fails: string
  /** Where it never settles. */
  readonly never: string
}

export const row = (name: string, fails: string, never: string, run: Row['run']): Row => ({
  name,
  fails,
  never,
  run,
})

export const turn = () => new Promise((resolve) => setImmediate(resolve))

/** What came of a request. Where its hook never settles, and no answer comes without it, `free` is to bring it about. */
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
    return 'code' in value
      ? `error ${String(value.code)}`
      : `${value.name}: ${value.message.split('\n', 1)[0]}`
  if (typeof value === 'object' && value !== null && 'status' in value)
    return `HTTP ${String(value.status)}`
  return typeof value === 'object' && value !== null && 'isError' in value && value.isError === true
    ? 'isError'
    : 'result'
}

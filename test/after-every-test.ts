/*
 * Hooks of the helpers. The files of a worker share its modules: an `afterEach` at the top level
 * of a helper would be registered for the first file that imports it, and for no other.
 */

type Hook = () => unknown

const hooks: Hook[] = []

/** Runs a function after every test of every file, in the reverse order. For helpers; test files use `afterEach`. */
export function afterEveryTest(hook: Hook): void {
  hooks.push(hook)
}

/** Runs all of them, and throws the first error. */
export async function runHooks(): Promise<void> {
  const errors: unknown[] = []
  for (const hook of hooks.toReversed()) {
    try {
      await hook()
    } catch (error) {
      errors.push(error)
    }
  }
  if (errors.length > 0) throw errors[0]
}

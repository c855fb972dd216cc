/** The steps that every validation may take: about 0.2 s. */
const BASE = 20_000_000
/** Further steps for each value within the validated one, and for each character of its strings and names. */
const PER_VALUE = 50
const PER_CHARACTER = 16
/** Maximum further steps: about two seconds. */
const MAX_FURTHER = 10 * BASE
/** From this many members on, V8 collects the names of an object each time anew. */
const LARGE = 128

/** The steps are exceeded, and the value cannot be validated. */
export class StepLimitError extends Error {}

/** The reason why a value could not be validated; rethrows errors that the value did not cause. */
export function validationError(error: unknown): string {
  // MAX_DEPTH or the stack is exceeded, or a Map or a string has reached its maximum size.
  if (error instanceof RangeError) return 'is nested too deeply or too large to be validated'
  if (error instanceof StepLimitError) return error.message
  throw error
}

/**
 * Counts the steps of one validation, about 10 ns each. Both the schema and the value may be a peer's, and the cost of one
 * is multiplied by that of the other: only what is linear in the value may take longer than `BASE`.
 */
export class Steps {
  readonly #value: unknown
  #left = BASE
  #isExtended = false
  /** The names of large objects, for which `Object.keys` takes long. */
  #names: Map<object, readonly string[]> | undefined

  /** Begins the validation of a value, or of a schema. */
  constructor(value: unknown) {
    this.#value = value
  }

  spend(count: number): void {
    this.#left -= count
    if (this.#left < 0) this.#exhausted()
  }

  /** The names of the members of a value. */
  namesOf(value: object): readonly string[] {
    const known = this.#names?.get(value)
    if (known !== undefined) return known
    const names = Object.keys(value)
    this.spend((names.length < LARGE ? 4 : 16) * names.length)
    if (names.length >= LARGE) (this.#names ??= new Map()).set(value, names)
    return names
  }

  #exhausted(): void {
    // The size is only computed now, so that most validations need not.
    if (!this.#isExtended) {
      this.#isExtended = true
      this.#left += furtherSteps(this.#value)
    }
    if (this.#left < 0) throw new StepLimitError('takes too many steps to be validated')
  }
}

function furtherSteps(value: unknown): number {
  const open = [value]
  let steps = 0
  // The maximum ends it for a value that contains itself, too.
  while (open.length > 0 && steps < MAX_FURTHER) {
    const part = open.pop()
    steps += PER_VALUE
    if (typeof part === 'string') steps += PER_CHARACTER * part.length
    if (typeof part !== 'object' || part === null) continue
    if (!Array.isArray(part))
      for (const name of Object.keys(part)) steps += PER_CHARACTER * name.length
    for (const each of Object.values(part) as unknown[]) open.push(each)
  }
  return Math.min(steps, MAX_FURTHER)
}

import type { Issue, JsonSchema } from '../schema/issue.js'
import { check } from '../schema/json-schema.js'
import { lint } from '../schema/lint.js'
import { StepLimitError, Steps } from '../schema/steps.js'

/** Steps that any capture may take, and further ones for each character of its messages: about 0.5 s, and 0.5 µs. */
const BASE = 50_000_000
const PER_CHARACTER = 50
/** Maximum steps that are left for what follows. */
const MAX_LEFT = 4 * BASE

/** Counts the steps of all validations of a capture. */
class CaptureSteps extends Steps {
  #left = BASE
  isExceeded = false

  constructor() {
    super(undefined)
  }

  extend(count: number): void {
    this.#left = Math.min(this.#left + count, MAX_LEFT)
  }

  override spend(count: number): void {
    this.#left -= count
    if (this.#left >= 0) return
    this.#left = 0
    this.isExceeded = true
    throw new StepLimitError()
  }
}

/**
 * Applies the schemas of tools. Schemas and values are both a peer's: all validations of a capture share one budget, in
 * proportion to what was read. The schema that exceeds it is reported once, and not applied any more.
 */
export class ToolSchemas {
  readonly #steps = new CaptureSteps()
  readonly #skipped = new WeakSet<JsonSchema>()
  /** Whether a schema can be applied; others are reported with the definition, or not supported. */
  readonly #applicable = new WeakMap<JsonSchema, boolean>()

  /** A message was read, of so many characters. */
  read(length: number): void {
    this.#steps.extend(PER_CHARACTER * length)
  }

  /** The problems of a schema. `skip` is called if it exceeds the budget. */
  problems(schema: JsonSchema, skip: () => void): string[] {
    return this.#within(schema, skip, (steps) => lint(schema, { patterns: false, steps })) ?? []
  }

  /** Whether a value can be validated. */
  isApplicable(schema: JsonSchema, skip: () => void): boolean {
    let known = this.#applicable.get(schema)
    if (known === undefined) {
      const problems = this.#within(schema, skip, (steps) => lint(schema, { steps }))
      known = problems?.length === 0
      this.#applicable.set(schema, known)
    }
    return known
  }

  /** The issues of a value. */
  issues(schema: JsonSchema, value: unknown, skip: () => void): readonly Issue[] {
    return this.#within(schema, skip, (steps) => check(schema, value, steps).issues) ?? []
  }

  #within<Result>(
    schema: JsonSchema,
    skip: () => void,
    run: (steps: Steps) => Result,
  ): Result | undefined {
    if (this.#skipped.has(schema)) return undefined
    this.#steps.isExceeded = false
    const result = run(this.#steps)
    if (!this.#steps.isExceeded) return result
    this.#skipped.add(schema)
    skip()
    return undefined
  }
}

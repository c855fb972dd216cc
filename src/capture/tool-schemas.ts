import type { Issue, JsonSchema } from '../schema/issue.js'
import { check } from '../schema/json-schema.js'
import { lint } from '../schema/lint.js'
import { StepLimitError, Steps } from '../schema/steps.js'

/** Steps that any capture may take, and further ones for each character of its messages: about 1 s, and 1 µs. */
const BASE = 100_000_000
const PER_CHARACTER = 100
/** Maximum steps that are left for what follows. */
const MAX_LEFT = 4 * BASE
/** One validation may take one in so many of the steps that are left, so that others remain possible. */
const PARTS = 4
/** A schema that needs more for one validation is not applied any more. With less, the capture may have been short of them. */
const OWN_SHARE = BASE / 8
/** Characters of schemas that are remembered. */
const MAX_REMEMBERED = 4 * 1024 * 1024
/** Problems of a schema that are looked at, and those that are reported. */
const MAX_LINTED = 100
const MAX_PROBLEMS = 5

/** Counts the steps of all validations of a capture. */
class CaptureSteps extends Steps {
  #left = BASE
  /** What the current validation may still take. */
  #own = 0
  isExceeded = false

  constructor() {
    super(undefined)
  }

  extend(count: number): void {
    this.#left = Math.min(this.#left + count, MAX_LEFT)
  }

  /** The steps that one validation may take now. */
  get share(): number {
    return Math.floor(this.#left / PARTS)
  }

  begin(): void {
    this.#own = this.share
    this.isExceeded = false
  }

  override spend(count: number): void {
    const spent = Math.min(count, this.#own)
    this.#own -= spent
    this.#left -= spent
    if (spent === count) return
    this.isExceeded = true
    throw new StepLimitError()
  }
}

/** What is known of a schema, and of all that have the same text. */
interface Known {
  /** The first of them: it is indexed only once. */
  readonly schema: JsonSchema
  readonly length: number
  /** Once it was checked. */
  checked: { problems: readonly SchemaProblem[]; isApplicable: boolean } | undefined
  /** The steps that were too few for it; 0 if that was never so, Infinity if it is not applied any more. */
  tooFew: number
}

export interface SchemaProblem {
  readonly rule: 'invalid-schema' | 'refused-schema'
  readonly text: string
}

/**
 * Applies the schemas of tools. Schemas and values are both a peer's: all validations of a capture share one budget, in
 * proportion to what was read, of which each may take a part. A schema that needs too much is reported once, and not
 * applied any more; if only little was left, it is applied again when there is more.
 */
export class ToolSchemas {
  readonly #steps = new CaptureSteps()
  readonly #known = new WeakMap<JsonSchema, Known>()
  /** By their text, since a list may be read often; those that were met last. */
  readonly #byText = new Map<string, Known>()
  #remembered = 0

  /** A message was read, of so many characters. */
  read(length: number): void {
    this.#steps.extend(PER_CHARACTER * length)
  }

  /** What is reported of a schema. `skip` is called if it is too costly to be checked. */
  problems(schema: JsonSchema, skip: () => void): readonly SchemaProblem[] {
    return this.#check(this.#find(schema), skip)?.problems ?? []
  }

  /** Whether a value can be validated; other schemas are reported with the definition, or not supported. */
  isApplicable(schema: JsonSchema, skip: () => void): boolean {
    return this.#check(this.#find(schema), skip)?.isApplicable ?? false
  }

  /** The issues of a value. */
  issues(schema: JsonSchema, value: unknown, skip: () => void): readonly Issue[] {
    const known = this.#find(schema)
    return this.#within(known, skip, (steps) => check(known.schema, value, steps).issues) ?? []
  }

  #check(known: Known, skip: () => void): Known['checked'] {
    known.checked ??= this.#within(known, skip, (steps) => {
      const found = lint(known.schema, { steps })
      return { problems: reported(found), isApplicable: found.length === 0 }
    })
    return known.checked
  }

  #find(schema: JsonSchema): Known {
    let known = this.#known.get(schema)
    if (known !== undefined) return known
    const text = JSON.stringify(schema)
    known = this.#byText.get(text) ?? {
      schema,
      length: text.length,
      checked: undefined,
      tooFew: 0,
    }
    this.#known.set(schema, known)
    if (!this.#byText.delete(text)) this.#remembered += text.length
    this.#byText.set(text, known)
    for (const [oldest, { length }] of this.#byText) {
      if (this.#remembered <= MAX_REMEMBERED || oldest === text) break
      this.#byText.delete(oldest)
      this.#remembered -= length
    }
    return known
  }

  #within<Result>(
    known: Known,
    skip: () => void,
    run: (steps: Steps) => Result,
  ): Result | undefined {
    const { share } = this.#steps
    // A try that fails again would only take steps from other schemas.
    if (share < 2 * known.tooFew) return undefined
    this.#steps.begin()
    const result = run(this.#steps)
    if (!this.#steps.isExceeded) return result
    if (known.tooFew === 0) skip()
    known.tooFew = share < OWN_SHARE ? Math.max(share, 1) : Infinity
    return undefined
  }
}

/** The keyword that a problem is about, if it is not a fault of the schema itself. */
const TOLERATED = /(?:^|\/)(pattern|patternProperties|\$id|\$ref|\$dynamicRef): /

/** The problems that are reported. Patterns should, but need not, be regular expressions of ECMAScript. */
function reported(problems: readonly string[]): SchemaProblem[] {
  return problems
    .slice(0, MAX_LINTED)
    .flatMap((text): SchemaProblem[] => {
      const [, keyword] = TOLERATED.exec(text) ?? []
      if (keyword === undefined) return [{ rule: 'invalid-schema', text }]
      // A reference to elsewhere is valid, but not resolved.
      return keyword.startsWith('$') ? [{ rule: 'refused-schema', text }] : []
    })
    .slice(0, MAX_PROBLEMS)
}

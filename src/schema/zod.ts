import { isObject } from '../is-object.js'
import type { StandardResult, StandardSchema } from './standard-schema.js'

/*
 * Zod first validates any schema synchronously, and starts again if a function of the schema has returned a promise: the
 * function runs twice, and the first promise is dropped. If that one rejects, the process ends. A schema without
 * functions is validated as every other; one that has any is validated by `safeParseAsync`, which runs them once.
 */

/** The members of a definition that have checks or schemas in them, in zod 3 and 4. */
const PARTS =
  'shape catchall element type schema options items rest left right in out innerType keyType valueType checks getter'
/** Maximum number of parts to look at: the schemas of `lazy` may be new ones each time. */
const MAX_PARTS = 1000

interface Asynchronous {
  safeParseAsync(
    value: unknown,
  ): Promise<
    | { success: true; data: unknown }
    | { success: false; error: Extract<StandardResult<unknown>, { issues: readonly unknown[] }> }
  >
}

/** How a schema validates, without the attempt that drops promises. */
export function validateOf(
  schema: StandardSchema,
): (value: unknown) => StandardResult<unknown> | Promise<StandardResult<unknown>> {
  const standard = (value: unknown) => schema['~standard'].validate(value)
  if (schema['~standard'].vendor !== 'zod' || !isAsynchronous(schema)) return standard
  let found: boolean | undefined
  return (value) => {
    // Not earlier: a schema may refer to one that is defined after it.
    found ??= hasFunctions(schema, new Set())
    return found ? parse(schema, value) : standard(value)
  }
}

function isAsynchronous(schema: object): schema is Asynchronous {
  return 'safeParseAsync' in schema && typeof schema.safeParseAsync === 'function'
}

async function parse(schema: Asynchronous, value: unknown): Promise<StandardResult<unknown>> {
  const parsed = await schema.safeParseAsync(value)
  return parsed.success ? { value: parsed.data } : parsed.error
}

/** Whether a part of a schema is a refinement or a transformation. */
function hasFunctions(part: unknown, seen: Set<unknown>): boolean {
  if (typeof part === 'function') return hasFunctions(part(), seen)
  if (Array.isArray(part)) return part.some((each) => hasFunctions(each, seen))
  if (!isObject(part) || seen.has(part)) return false
  if (seen.add(part).size > MAX_PARTS) return true
  const { _zod: internals, _def } = part
  const definition = isObject(internals) ? internals['def'] : _def
  // The members of an object.
  if (!isObject(definition)) return Object.values(part).some((each) => hasFunctions(each, seen))
  return (
    'effect' in definition ||
    'transform' in definition ||
    definition['check'] === 'custom' ||
    PARTS.split(' ').some((name) => hasFunctions(definition[name], seen))
  )
}

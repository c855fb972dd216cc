import type { Infer, InferInput } from './infer.js'
import type { StandardSchema } from './standard-schema.js'
import { validateOf } from './zod.js'

/**
 * Adds a JSON Schema to a schema whose library creates it by a separate function: `withJsonSchema(schema, z.toJSONSchema)`
 * for zod/mini and for zod before 4.2.
 */
export function withJsonSchema<Given extends StandardSchema>(
  schema: Given,
  convert: (schema: Given, options: { target: 'draft-2020-12'; io: 'input' | 'output' }) => object,
): StandardSchema<InferInput<Given>, Infer<Given>> {
  const converted = (io: 'input' | 'output') => () => ({
    ...convert(schema, { target: 'draft-2020-12', io }),
  })
  const standard = {
    ...schema['~standard'],
    validate: validateOf(schema),
    jsonSchema: { input: converted('input'), output: converted('output') },
  }
  return { '~standard': standard as StandardSchema<InferInput<Given>, Infer<Given>>['~standard'] } // the types are those of the schema
}

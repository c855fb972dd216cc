import type { StandardSchema } from './standard.js'

/** The value that a schema describes: by its own types, or by reading a JSON Schema written in place. */
export type Infer<Schema> = Schema extends StandardSchema<unknown, infer Output> ? Output : FromJson<Schema>

/** What must be given for a value of that schema, before the schema's own conversions. */
export type InferInput<Schema> = Schema extends StandardSchema<infer Input, unknown> ? Input : FromJson<Schema>

type FromJson<Schema> = Schema extends { const: infer Value }
  ? Value
  : Schema extends { enum: readonly (infer Value)[] }
    ? Value
    : Schema extends { type: infer Type }
      ? FromType<Type extends readonly (infer Each)[] ? Each : Type, Schema>
      : unknown

type FromType<Type, Schema> = Type extends 'string'
  ? string
  : Type extends 'number' | 'integer'
    ? number
    : Type extends 'boolean'
      ? boolean
      : Type extends 'null'
        ? null
        : Type extends 'array'
          ? Schema extends { items: infer Items }
            ? FromJson<Items>[]
            : unknown[]
          : Type extends 'object'
            ? FromObject<Schema>
            : unknown

type FromObject<Schema> = Schema extends { properties: infer Properties }
  ? Schema extends { required: readonly (infer Required)[] }
    ? Flat<
        { [Key in keyof Properties & Required]: FromJson<Properties[Key]> } & {
          [Key in Exclude<keyof Properties, Required>]?: FromJson<Properties[Key]>
        }
      >
    : { -readonly [Key in keyof Properties]?: FromJson<Properties[Key]> }
  : Record<string, unknown>

type Flat<Type> = { -readonly [Key in keyof Type]: Type[Key] }

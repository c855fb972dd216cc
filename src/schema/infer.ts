import type { StandardSchema } from './standard-schema.js'

/** The type of a valid value: the output type of a Standard Schema, or read from a literal JSON Schema. */
export type Infer<Schema> =
  Schema extends StandardSchema<unknown, infer Output> ? Output : FromJson<Schema, Schema>

/** The type before the schema's own conversions: the input type of a Standard Schema. */
export type InferInput<Schema> =
  Schema extends StandardSchema<infer Input, unknown> ? Input : FromJson<Schema, Schema>

/** `Root` is the whole schema, in which references are resolved. `anyOf` and `oneOf` next to a `type` count for objects only. */
type FromJson<Schema, Root> = Schema extends { const: infer Value }
  ? Value
  : Schema extends { enum: readonly (infer Value)[] }
    ? Value
    : Schema extends { type: infer Type }
      ? FromType<Type extends readonly (infer Each)[] ? Each : Type, Schema, Root>
      : Schema extends Composed
        ? FromReference<Schema, Root> & FromAlternatives<Schema, Root>
        : unknown

type Composed = { $ref: unknown } | { anyOf: unknown } | { oneOf: unknown }

/** Resolves references to the root and to a top-level definition; others are `unknown`. */
type FromReference<Schema, Root> = Schema extends { $ref: infer Reference }
  ? Reference extends '#'
    ? FromJson<Root, Root>
    : Reference extends `#/${infer Group extends '$defs' | 'definitions'}/${infer Name}`
      ? Root extends { readonly [Key in Group]: { readonly [Key in Name]: infer Target } }
        ? FromJson<Target, Root>
        : unknown
      : unknown
  : unknown

type FromAlternatives<Schema, Root> = (Schema extends { anyOf: readonly (infer Alternative)[] }
  ? FromEach<Alternative, Root>
  : unknown) &
  (Schema extends { oneOf: readonly (infer Alternative)[] } ? FromEach<Alternative, Root> : unknown)

type FromEach<Alternative, Root> = Alternative extends unknown ? FromJson<Alternative, Root> : never

type FromType<Type, Schema, Root> = Type extends 'string'
  ? string
  : Type extends 'number' | 'integer'
    ? number
    : Type extends 'boolean'
      ? boolean
      : Type extends 'null'
        ? null
        : Type extends 'array'
          ? Schema extends { items: infer Items }
            ? FromJson<Items, Root>[]
            : unknown[]
          : Type extends 'object'
            ? Schema extends Composed | { additionalProperties: object }
              ? FromOpenObject<Schema, Root> &
                  FromReference<Schema, Root> &
                  FromAlternatives<Schema, Root>
              : FromObject<Schema, Root>
            : unknown

type FromObject<Schema, Root> = Schema extends { properties: infer Properties }
  ? Schema extends { required: readonly (infer Required)[] }
    ? Flat<
        { [Key in keyof Properties & Required]: FromJson<Properties[Key], Root> } & {
          [Key in Exclude<keyof Properties, Required>]?: FromJson<Properties[Key], Root>
        }
      >
    : { -readonly [Key in keyof Properties]?: FromJson<Properties[Key], Root> }
  : Record<string, unknown>

/** With an index signature for additional properties, which in TypeScript must include the types of the known ones. */
type FromOpenObject<Schema, Root> = Schema extends {
  additionalProperties: infer Additional extends object
}
  ? Schema extends { properties: infer Properties }
    ? FromObject<Schema, Root> & {
        [key: string]:
          | FromJson<Additional, Root>
          | FromJson<Properties[keyof Properties], Root>
          | undefined
      }
    : Record<string, FromJson<Additional, Root>>
  : FromObject<Schema, Root>

type Flat<Type> = { -readonly [Key in keyof Type]: Type[Key] }

/** Unknown for a schema. For an object of schemas, the message that the compiler shows: that it must be wrapped. */
export type NoRawShape<Given> = Given extends
  | Standard
  | { readonly type: string | readonly string[] }
  ? unknown
  : Extract<Given[keyof Given], Standard> extends never
    ? unknown
    : 'This is a raw shape, not a schema. Wrap it: z.object({ … })'
type Standard = { readonly '~standard': unknown }

import { isObject } from '../is-object.js'

/* Advice for schemas of libraries that do not provide a JSON Schema. */

interface Zod {
  readonly _zod: {
    readonly version?: { major: number; minor: number; patch: number }
    readonly traits?: ReadonlySet<string>
  }
}

function isZod4(schema: object): schema is Zod {
  return '_zod' in schema && isObject(schema._zod)
}

/** A schema of zod before 3.24, which does not implement Standard Schema. */
function isOldZod(schema: unknown): boolean {
  return isObject(schema) && '_def' in schema && typeof schema['safeParse'] === 'function'
}

const WRAP = 'wrap it: withJsonSchema(schema, z.toJSONSchema), with withJsonSchema from ccmcp'
const ZOD_3 =
  'comes from zod 3, which does not provide a JSON Schema; install zod 4.2 or later, or use the package zod-to-json-schema: withJsonSchema(schema, (schema) => zodToJsonSchema(schema)), with withJsonSchema from ccmcp'

/** The problem and the advice for a Standard Schema without a JSON Schema. */
export function withoutJsonSchema(schema: {
  readonly '~standard': { readonly vendor: string }
}): string {
  const { vendor } = schema['~standard']
  if (vendor === 'zod') {
    if (!isZod4(schema)) return ZOD_3
    const { version, traits } = schema._zod
    const number =
      version === undefined ? '' : ` ${version.major}.${version.minor}.${version.patch}`
    if (traits?.has('ZodMiniType') === true)
      return `comes from zod/mini${number}, which does not provide a JSON Schema by itself; import z from zod (4.2 or later), or ${WRAP}`
    return `comes from zod${number}, which does not provide a JSON Schema by itself; install zod 4.2 or later, or ${WRAP}`
  }
  const advice =
    vendor === 'valibot'
      ? 'wrap it: toStandardJsonSchema(schema) from @valibot/to-json-schema'
      : 'use a version that implements Standard JSON Schema, or write a JSON Schema'
  return `comes from ${vendor}, which does not provide a JSON Schema by itself; ${advice}`
}

/** The problem of an object that is not a JSON Schema, such as a raw shape of zod schemas. */
export function notJsonSchema(schema: unknown): string | undefined {
  if (!isObject(schema)) return undefined
  if (isOldZod(schema)) return ZOD_3
  for (const [name, part] of Object.entries(schema)) {
    const vendor = vendorOf(part)
    if (vendor === undefined) continue
    const wrapped = OBJECTS[vendor] ?? 'an object schema of that library'
    return `is a raw shape, not a schema: its member "${name}" is a schema of ${vendor}; wrap the shape: ${wrapped}`
  }
  return undefined
}

const OBJECTS: Readonly<Record<string, string>> = {
  zod: 'z.object({ … })',
  valibot: 'toStandardJsonSchema(v.object({ … }))',
  arktype: 'type({ … })',
}

function vendorOf(part: unknown): string | undefined {
  if ((typeof part !== 'object' && typeof part !== 'function') || part === null) return undefined
  if (isOldZod(part)) return 'zod'
  const standard: unknown = '~standard' in part ? part['~standard'] : undefined
  return isObject(standard) && typeof standard['vendor'] === 'string'
    ? standard['vendor']
    : undefined
}

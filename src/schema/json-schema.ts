import type { Validator } from 'ata-validator'
import { LIBRARY } from './library.js'
import { type Issue, type JsonSchema, type Outcome, step } from './issue.js'

type Library = { Validator: typeof Validator }

/*
 * The full validator, for every schema that is not an everyday one. It is
 * loaded when the first value is checked against such a schema: at once where
 * the runtime can (so that calls start in the order in which they came),
 * otherwise by import().
 */
let library: Library | Promise<Library> | undefined
const compiled = new WeakMap<JsonSchema, Validator>()

export function check(schema: JsonSchema, value: unknown): Outcome | Promise<Outcome> {
  library ??= load()
  return library instanceof Promise ? library.then((loaded) => run(loaded, schema, value)) : run(library, schema, value)
}

function load(): Library | Promise<Library> {
  const module = globalThis.process?.getBuiltinModule?.('node:module')
  if (module !== undefined) return module.createRequire(import.meta.url)(LIBRARY) as Library // untyped by nature
  return import(LIBRARY).then((loaded: { default: Library }) => (library = loaded.default))
}

function run({ Validator }: Library, schema: JsonSchema, value: unknown): Outcome {
  let validator = compiled.get(schema)
  if (validator === undefined) {
    // Defaults and formats are annotations: the value is checked, never changed.
    validator = new Validator(schema, { useDefaults: false, coerceTypes: false, assertFormat: false, richErrors: false })
    compiled.set(schema, validator)
  }
  const { valid, errors } = validator.validate(value)
  return valid ? { value } : { issues: errors.map(issueOf) }
}

function issueOf({ instancePath, message, params }: { instancePath?: string; message: string; params?: object }): Issue {
  const segments = (instancePath ?? '')
    .split('/')
    .slice(1)
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'))
  const path = segments.reduce(step, '')
  const missing = params !== undefined && 'missingProperty' in params ? params.missingProperty : undefined
  return typeof missing === 'string' ? { path: step(path, missing), message: 'is required' } : { path, message }
}

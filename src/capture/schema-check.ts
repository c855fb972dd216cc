import { type Issue, type JsonSchema, isObject } from '../schema/issue.js'
import { check } from '../schema/json-schema.js'
import { Acceptance } from './acceptance.js'
import { type OfficialSchema, officialSchemas } from './schemas/index.js'

/** Checks messages against the official schema of one revision. */
export class SchemaCheck {
  readonly #official: OfficialSchema
  /** The definitions of requests and notifications, by method. */
  readonly #byMethod = new Map<string, string>()
  /** The definitions of results, by the method of their request. */
  readonly #results = new Map<string, string>()
  readonly #schemas = new Map<string, JsonSchema>()
  readonly #acceptance: Acceptance

  constructor(official: OfficialSchema) {
    this.#official = official
    this.#acceptance = new Acceptance(official.definitions)
    for (const [name, { properties }] of Object.entries(official.definitions)) {
      const method = isObject(properties) ? properties['method'] : undefined
      if (isObject(method) && typeof method['const'] === 'string')
        this.#byMethod.set(method['const'], name)
    }
    for (const [method, name] of this.#byMethod) {
      const own = name.replace(/Request$/, 'Result')
      this.#results.set(method, own in official.definitions ? own : 'EmptyResult')
    }
  }

  /** The issues of a request or notification; undefined if the schema does not have its method. */
  message(method: string, message: unknown): readonly Issue[] | undefined {
    const definition = this.#byMethod.get(method)
    return definition === undefined ? undefined : this.#issues(definition, message)
  }

  /** The issues of a result; undefined if the schema does not say what it is. */
  result(method: string, hasTask: boolean, result: unknown): readonly Issue[] | undefined {
    const definition = this.#resultDefinition(method, hasTask, result)
    return definition === undefined ? undefined : this.#issues(definition, result)
  }

  #resultDefinition(method: string, hasTask: boolean, result: unknown): string | undefined {
    const { definitions } = this.#official
    const own = this.#results.get(method)
    if (own === undefined) return undefined
    if (isObject(result)) {
      const type = result['resultType']
      if (type === 'input_required') return 'InputRequiredResult'
      // Extensions have result types of their own.
      if (typeof type === 'string' && type !== 'complete') return undefined
      if (hasTask && 'task' in result && 'CreateTaskResult' in definitions)
        return 'CreateTaskResult'
    }
    return own
  }

  #issues(definition: string, value: unknown): readonly Issue[] {
    if (this.#acceptance.accepts(definition, value)) return []
    const { dialect, root, definitions } = this.#official
    let schema = this.#schemas.get(definition)
    if (schema === undefined) {
      schema = {
        $schema: dialect,
        [root]: definitions,
        allOf: [{ $ref: `#/${root}/${definition}` }],
      }
      this.#schemas.set(definition, schema)
    }
    return check(schema, value).issues ?? []
  }
}

/** The checks of all revisions, by revision. */
export async function loadSchemaChecks(): Promise<Map<string, SchemaCheck>> {
  const schemas = await officialSchemas()
  return new Map([...schemas].map(([revision, schema]) => [revision, new SchemaCheck(schema)]))
}

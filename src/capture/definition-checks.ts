import { headerParameters } from '../schema/headers.js'
import { type JsonSchema, isDialect, isObject } from '../schema/issue.js'
import type { AddedList, ConversationDefinitions } from './conversation-definitions.js'
import type { Definitions } from './definitions.js'
import type { FrameFindings } from './findings.js'
import type { Span } from './frames.js'
import type { JsonNode } from './json.js'
import { memberOf, stringAt, valueAt } from './lazy-json.js'
import type { Message } from './messages.js'
import type { Link } from './operations.js'
import type { ToolSchemas } from './tool-schemas.js'

const MAX_TOOL_NAME = 64
const TOOL_NAME = /^[\w.-]*$/
/** What the APIs of providers accept as the name of a property. */
const PROPERTY_NAME = /^[\w.-]{1,64}$/
/** Definitions beyond this are reported: about 25,000 tokens. */
const LARGE_BYTES = 100_000
/** An estimate: tokens depend on the model. */
const BYTES_PER_TOKEN = 4
/** Maximum number of constructs that providers refuse that are reported for each schema. */
const MAX_REFUSALS = 5
/** Maximum number of subschemas that are checked. */
const MAX_PARTS = 2000
/** Levels and values: larger schemas are not checked. */
const MAX_LEVELS = 60
const MAX_VALUES = 9000
/** Maximum number of unused tools that a finding names. */
const MAX_NAMES = 20
/** Maximum number of called tools that are remembered, and of characters of a name. */
const MAX_CALLED = 10_000
const MAX_CALLED_NAME = 1000
/** With fewer calls, unused tools are not reported. */
const MIN_CALLS = 10

export function tokenEstimate(bytes: number): string {
  return `about ${Math.ceil(bytes / BYTES_PER_TOKEN)} tokens (an estimate: bytes / ${BYTES_PER_TOKEN})`
}

/** Rules about tools. */
export class ToolChecks {
  readonly #called = new Set<string>()
  #calls = 0
  /** Where the last list of tools is. */
  #list: Span | undefined
  #isUnusedKnown = true

  /** A list of tools; `bytes`: where it is. */
  list(
    { list, listing, repeated }: AddedList,
    bytes: Span,
    schemas: ToolSchemas,
    found: FrameFindings,
  ): void {
    this.#list = bytes
    const before = listing?.bytes ?? 0
    const size = before + bytes.end - bytes.start
    if (listing !== undefined) {
      listing.bytes = size
      if (size > LARGE_BYTES && before <= LARGE_BYTES)
        found.text('large-definitions', list, `${size} bytes, ${tokenEstimate(size)}`)
    }
    for (const tool of repeated)
      found.text('duplicate-name', memberOf(tool, 'name') ?? tool, stringAt(tool, 'name'))
    for (const tool of list.items ?? []) checkTool(tool, schemas, found)
  }

  /** A list cannot be read, so that it is not known which tools are unused. */
  noteUnreadableList(): void {
    this.#isUnusedKnown = false
  }

  /** A call, and its result. */
  call(
    message: Message,
    link: Link,
    definitions: ConversationDefinitions,
    found: FrameFindings,
  ): void {
    const { operation, revision } = link
    if (operation?.method !== 'tools/call' || operation.target === undefined) return
    if (message.kind === 'request') {
      this.#calls++
      operation.tool = definitions.tool(operation.target)
    }
    if (message.kind === 'request' && this.#called.size < MAX_CALLED)
      this.#called.add(operation.target.slice(0, MAX_CALLED_NAME))
    const { result } = message
    if (message.kind !== 'response' || result === undefined || operation.hasTask) return
    const hasStructure = revision !== undefined && revision.structuredContent !== 'none'
    const isComplete = (valueAt(result, 'resultType') ?? 'complete') === 'complete'
    const tool = definitions.tool(operation.target)
    const schema = tool?.['outputSchema']
    // The tool may have changed since the call.
    if (operation.tool !== tool) return
    if (!hasStructure || !isComplete || valueAt(result, 'isError') === true || !isObject(schema))
      return
    checkOutput(operation.target, schema, result, definitions.schemas, found)
  }

  /** At the end of a capture: where the tools were listed, and those that were never called. */
  unused(definitions: Definitions): { span: Span; detail: string } | undefined {
    const tools = [...(definitions.listing('tools')?.items.keys() ?? [])]
    const unused = tools.filter((name) => !this.#called.has(name.slice(0, MAX_CALLED_NAME)))
    const isKnown =
      this.#isUnusedKnown && this.#calls >= MIN_CALLS && this.#called.size < MAX_CALLED
    if (this.#list === undefined || !isKnown || unused.length === 0) return undefined
    const more = unused.length > MAX_NAMES ? ', …' : ''
    const names = unused.slice(0, MAX_NAMES).join(', ')
    const detail = `${unused.length} of ${tools.length} in ${this.#calls} calls: ${names}${more}`
    return { span: this.#list, detail }
  }
}

function checkOutput(
  tool: string,
  schema: JsonSchema,
  result: JsonNode,
  schemas: ToolSchemas,
  found: FrameFindings,
): void {
  const content = memberOf(result, 'structuredContent')
  const skip = () => found.text('not-validated', content ?? result, shownName(tool))
  if (!schemas.isApplicable(schema, skip)) return
  if (content === undefined) {
    found.text('output-schema', result, 'structuredContent is missing')
    return
  }
  const [issue] = schemas.issues(schema, content.value, skip)
  if (issue !== undefined)
    found.text('output-schema', content, `${issue.path} ${issue.message}`.trim())
}

function shownName(tool: string): string {
  return tool.slice(0, MAX_TOOL_NAME)
}

function checkTool(tool: JsonNode, schemas: ToolSchemas, found: FrameFindings): void {
  const name = memberOf(tool, 'name')
  const text = stringAt(tool, 'name') ?? ''
  if (name !== undefined && text.length > MAX_TOOL_NAME)
    found.text('long-tool-name', name, `${text.length} characters`)
  if (name !== undefined && !TOOL_NAME.test(text)) found.text('tool-name', name)
  for (const member of ['inputSchema', 'outputSchema'] as const) {
    const schema = memberOf(tool, member)
    if (schema !== undefined) checkSchema(schema, member, shownName(text), schemas, found)
  }
}

function checkSchema(
  schema: JsonNode,
  member: string,
  shown: string,
  schemas: ToolSchemas,
  found: FrameFindings,
): void {
  const { value } = schema
  // The official schema reports a value that is not an object.
  if (!isObject(value)) return
  const dialect = value['$schema']
  if (dialect !== undefined && !isDialect(dialect)) return
  if (!isSmall(value)) return
  const skip = () => found.text('not-validated', schema, `${shown} ${member}`)
  for (const { rule, text } of schemas.problems(value, skip))
    found.text(rule, schema, `${shown} ${member} ${text}`)
  if (member !== 'inputSchema') return
  for (const problem of refusals(value).slice(0, MAX_REFUSALS))
    found.text('refused-schema', schema, `${shown} ${problem}`)
  try {
    headerParameters(value)
  } catch (error) {
    if (error instanceof TypeError)
      found.text('invalid-schema', schema, `${shown} ${error.message}`)
  }
}

/** Whether a schema is small enough to be looked at. */
function isSmall(schema: unknown): boolean {
  let open: unknown[] = [schema]
  for (let depth = 0, count = 0; open.length > 0; depth++) {
    count += open.length
    if (depth > MAX_LEVELS || count > MAX_VALUES) return false
    open = open.flatMap((value) =>
      typeof value === 'object' && value !== null ? Object.values(value) : [],
    )
  }
  return true
}

/** What providers are known to refuse, although JSON Schema allows it. */
function refusals(schema: JsonSchema): string[] {
  const problems = ['anyOf', 'oneOf', 'allOf', 'not', 'enum', '$ref']
    .filter((keyword) => keyword in schema)
    .map((keyword) => `has ${keyword} at the top of its input schema`)
  const open: unknown[] = [schema]
  for (let count = 0; open.length > 0 && count < MAX_PARTS; count++) {
    const part = open.pop()
    if (!isObject(part)) continue
    const { properties, items, type } = part
    if (type === 'array' && items === undefined && part['prefixItems'] === undefined)
      problems.push('has an array without "items" in its input schema')
    open.push(items)
    if (!isObject(properties)) continue
    const name = Object.keys(properties).find((each) => !PROPERTY_NAME.test(each))
    if (name !== undefined) problems.push(`has the property ${JSON.stringify(name.slice(0, 100))}`)
    open.push(...Object.values(properties))
  }
  return [...new Set(problems)]
}

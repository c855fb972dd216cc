import { EXTENSION_META, SERVER_INFO } from '../meta.js'
import type {
  CacheHint,
  CallToolResult,
  ContentBlock,
  CreateMessageParams,
  CreateMessageResult,
  ElicitResult,
  GetPromptResult,
  Implementation,
  ProgressParams,
  PromptListing,
  ReadResourceResult,
  ResourceListing,
  ResourceTemplateListing,
  Root,
  SamplingContent,
  TextContent,
  ToolListing,
} from '../model.js'
import type { Fields, Revision } from './revision.js'

/*
 * Projection: from the newest shape to that of a revision. Fields that it lacks
 * are left out; content that it lacks becomes text, so that nothing is lost.
 */

/** The members that are objects of the protocol themselves. */
const NESTED: Readonly<Record<string, keyof Fields>> = {
  annotations: 'annotations',
  icons: 'icon',
  resource: 'resourceContents',
  arguments: 'promptArgument',
}

function pick(revision: Revision, shape: keyof Fields, value: object): Record<string, unknown> {
  const members = value as Readonly<Record<string | typeof EXTENSION_META, unknown>> // read by name only, and only names the revision has
  const picked: Record<string, unknown> = {}
  for (const name of revision.fields[shape]) {
    const member = members[name]
    if (member === undefined || member === null) continue // no member is nullable
    const nested = shape === 'tool' && name === 'annotations' ? 'toolAnnotations' : NESTED[name]
    if (nested === undefined || typeof member !== 'object') picked[name] = member
    else if (Array.isArray(member))
      picked[name] = member.map((item: object) => pick(revision, nested, item))
    else picked[name] = pick(revision, nested, member)
  }
  const added = members[EXTENSION_META]
  if (added !== undefined) picked['_meta'] = Object.assign({}, picked['_meta'], added)
  return picked
}

export function projectTool(revision: Revision, tool: ToolListing): Record<string, unknown> {
  const projected = pick(revision, 'tool', tool)
  if (tool.outputSchema !== undefined && !allowsOutput(revision, tool.outputSchema))
    delete projected['outputSchema']
  return projected
}

/** Before any JSON was allowed, a structured result had to be an object. */
function allowsOutput(revision: Revision, schema: Readonly<Record<string, unknown>>): boolean {
  return (
    revision.structuredContent === 'any' ||
    (revision.structuredContent === 'object' && schema['type'] === 'object')
  )
}

export function projectResource(
  revision: Revision,
  resource: ResourceListing,
): Record<string, unknown> {
  return pick(revision, 'resourceListing', resource)
}

export function projectResourceTemplate(
  revision: Revision,
  template: ResourceTemplateListing,
): Record<string, unknown> {
  return pick(revision, 'resourceTemplate', template)
}

export function projectPrompt(revision: Revision, prompt: PromptListing): Record<string, unknown> {
  return pick(revision, 'prompt', prompt)
}

export function projectReadResult(revision: Revision, result: ReadResourceResult): object {
  return {
    ...result,
    contents: result.contents.map((contents) => pick(revision, 'resourceContents', contents)),
  }
}

export function projectPromptResult(revision: Revision, result: GetPromptResult): object {
  return {
    ...result,
    messages: result.messages.map(({ role, content }) => ({
      role,
      content: projectBlock(revision, content),
    })),
  }
}

/** The capabilities that the revision has a name for. */
export function projectCapabilities(
  revision: Revision,
  capabilities: object,
): Record<string, unknown> {
  return pick(revision, 'capabilities', capabilities)
}

export function projectImplementation(
  revision: Revision,
  implementation: Implementation,
): Record<string, unknown> {
  return pick(revision, 'implementation', implementation)
}

/** Without the token, which is sent back digit for digit. */
export function projectProgress(
  revision: Revision,
  params: Omit<ProgressParams, 'progressToken'>,
): Record<string, unknown> {
  return pick(revision, 'progress', params)
}

export function projectCallResult(revision: Revision, result: CallToolResult): CallToolResult {
  const keeps =
    result.structuredContent === undefined || allowsValue(revision, result.structuredContent)
  if (keeps && result.content.every(isPlainText)) return result
  const { structuredContent, ...rest } = result
  const content = result.content.map((block) => projectBlock(revision, block))
  if (keeps)
    return structuredContent === undefined
      ? { ...rest, content }
      : { ...rest, content, structuredContent }
  // The text of a result says what its structured content says: the author's own, or its JSON.
  if (!result.content.some(({ type }) => type === 'text'))
    content.push({ type: 'text', text: JSON.stringify(structuredContent) })
  return { ...rest, content }
}

function allowsValue({ structuredContent }: Revision, value: unknown): boolean {
  if (structuredContent !== 'object') return structuredContent === 'any'
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isPlainText(block: ContentBlock): boolean {
  return block.type === 'text' && Object.keys(block).length === 2
}

function projectBlock(revision: Revision, block: ContentBlock): ContentBlock {
  const known = revision.contentTypes.includes(block.type) ? block : asText(block)
  return pick(revision, known.type, known) as unknown as ContentBlock // the fields of its kind, by the revision's own list
}

/** A text for clients whose revision lacks this content type. */
function asText(block: ContentBlock): TextContent {
  const text = (() => {
    switch (block.type) {
      case 'audio':
        return `[audio, ${block.mimeType}, ${Math.floor((block.data.length * 3) / 4)} bytes: this client's protocol revision has no audio]`
      case 'resource_link':
        return [`[resource] ${block.title ?? block.name}: ${block.uri}`, block.description]
          .filter(Boolean)
          .join('\n')
      default:
        return asJsonText(block).text
    }
  })()
  return block.annotations === undefined
    ? { type: 'text', text }
    : { type: 'text', text, annotations: block.annotations }
}

/** The parameters of sampling. If a message may have one content block only, several become messages. */
export function projectSampling(
  revision: Revision,
  params: CreateMessageParams,
): Record<string, unknown> {
  const messages = params.messages.flatMap((message) => {
    const content = Array.isArray(message.content) ? message.content : [message.content]
    const blocks = content.map((block) => projectSamplingContent(revision, block))
    if (revision.samplingTools)
      return [
        {
          ...pick(revision, 'samplingMessage', message),
          content: blocks.length === 1 ? blocks[0] : blocks,
        },
      ]
    return blocks.map((block) => ({
      ...pick(revision, 'samplingMessage', message),
      content: block,
    }))
  })
  const projected: Record<string, unknown> = { ...pick(revision, 'sampling', params), messages }
  if (params.tools !== undefined)
    projected['tools'] = params.tools.map((tool) => projectTool(revision, tool))
  return projected
}

/** The result of sampling. If it may have one content block only, several become a text. */
export function projectSamplingResult(
  revision: Revision | undefined,
  result: CreateMessageResult,
): object {
  if (revision === undefined) return result
  const content = Array.isArray(result.content) ? result.content : [result.content]
  const blocks = content.map((block) => projectSamplingContent(revision, block))
  if (revision.samplingTools)
    return { ...result, content: Array.isArray(result.content) ? blocks : blocks[0] }
  const texts = blocks.map((block) =>
    'text' in block ? String(block.text) : asJsonText(block).text,
  )
  return {
    ...result,
    content: blocks.length === 1 ? blocks[0] : { type: 'text', text: texts.join('\n') },
  }
}

function projectSamplingContent(revision: Revision, block: SamplingContent): object {
  if (block.type === 'tool_use' || block.type === 'tool_result')
    return revision.samplingTools ? block : asJsonText(block)
  return projectBlock(revision, block)
}

function asJsonText(value: object): TextContent {
  return { type: 'text', text: JSON.stringify(value) }
}

export function projectRoot(revision: Revision | undefined, root: Root): object {
  return revision === undefined ? root : pick(revision, 'root', root)
}

/** Only an accepted form has content. Array values are dropped in revisions without multi-select enums. */
export function projectElicitResult(
  revision: Revision | undefined,
  { action, content }: ElicitResult,
): object {
  if (action !== 'accept' || content === undefined) return { action }
  const lists = revision === undefined || revision.fields.formMultiEnum.length > 0
  const shown = Object.entries(content).filter(([, value]) => lists || !Array.isArray(value))
  return { action, content: Object.fromEntries(shown) }
}

/** The capabilities of a client that the revision has. */
export function projectClientCapabilities(
  revision: Revision,
  capabilities: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const projected = { ...capabilities }
  if (revision.fields.formString.length === 0) delete projected['elicitation']
  else if (revision.urlElicitation === 'none' && projected['elicitation'] !== undefined)
    projected['elicitation'] = {}
  if (!revision.samplingTools && projected['sampling'] !== undefined) projected['sampling'] = {}
  return projected
}

/** A result as it is sent: with `resultType`, server info and caching hints if the revision has them. */
export function addResultFields(
  revision: Revision,
  result: object,
  info: Implementation,
  cache: CacheHint | undefined,
): object {
  if (!revision.typedResults) return result
  const meta = '_meta' in result && typeof result._meta === 'object' ? result._meta : undefined
  return {
    resultType: 'complete',
    ...result,
    ...cache,
    _meta: { ...meta, [SERVER_INFO]: projectImplementation(revision, info) },
  }
}

import { isObject } from '../../jsonrpc/message.js'
import type {
  CreateMessageParams,
  CreateMessageResult,
  Root,
  SamplingContent,
  SamplingMessage,
} from '../../protocol/model.js'
import type { Revision } from '../../protocol/revisions/index.js'
import { projectSampling } from '../../protocol/revisions/project.js'
import { describeIssues } from '../../schema/standard.js'
import { DeclinedError, type Question, type SampleParams } from '../ask.js'
import { formChecker, projectForm } from './forms.js'
import { parseUrl } from '../../runtime.js'

/** A question as a request to the client, with the capabilities that it requires. */
export interface QuestionRequest {
  readonly method: string
  readonly params: object
  readonly requires: Readonly<Record<string, Readonly<Record<string, object>>>>
}

export type ValidAnswer =
  | { readonly value: unknown }
  | { readonly declined: DeclinedError['action'] }
/** A parsed answer. A wrong one is asked for again. */
export type ParsedAnswer = ValidAnswer | { readonly invalid: string }

/** The request of a question in a revision; a string says why there is none. */
export function toRequest(
  question: Question,
  revision: Revision,
  capabilities: Readonly<Record<string, unknown>>,
): QuestionRequest | string {
  if (!isQuestion(question))
    throw new TypeError(
      'call.ask() takes questions, each under a key of your own: call.ask({ name: form({ message, schema }) })',
    )
  switch (question.kind) {
    case 'form': {
      if (typeof question.message !== 'string')
        throw new TypeError('form: "message" must be a string')
      const requestedSchema = projectForm(revision, formChecker(question.schema))
      if (requestedSchema === undefined) return 'does not support this form'
      return {
        method: 'elicitation/create',
        params: { message: question.message, requestedSchema },
        requires: { elicitation: { form: {} } },
      }
    }
    case 'url': {
      if (revision.urlElicitation === 'none') return 'has no URL mode'
      if (parseUrl(question.url) === undefined)
        throw new TypeError(`A question's url must be a URL, not ${JSON.stringify(question.url)}`)
      const params = { mode: 'url', message: question.message, url: question.url }
      const identified =
        revision.urlElicitation === 'identified'
          ? { ...params, elicitationId: crypto.randomUUID() }
          : params
      return {
        method: 'elicitation/create',
        params: identified,
        requires: { elicitation: { url: {} } },
      }
    }
    case 'sample': {
      const { tools, toolChoice } = question.params
      const withTools = tools !== undefined || toolChoice !== undefined
      if (withTools && !revision.samplingTools) return 'has no tools in sampling'
      const asked = withBlocks(question.params)
      checkToolResults(asked)
      const params = projectSampling(revision, asked)
      // https://modelcontextprotocol.io/specification/2025-11-25/client/sampling#capabilities
      const { sampling } = capabilities
      if (revision.samplingTools && !(isObject(sampling) && sampling['context'] !== undefined))
        delete params['includeContext']
      return {
        method: 'sampling/createMessage',
        params,
        requires: { sampling: withTools ? { tools: {} } : {} },
      }
    }
    case 'roots':
      return { method: 'roots/list', params: {}, requires: { roots: {} } }
  }
}

/** The parameters with blocks instead of strings. */
function withBlocks(params: SampleParams): CreateMessageParams {
  const block = (content: string | SamplingContent): SamplingContent =>
    typeof content === 'string' ? { type: 'text', text: content } : content
  const messages = params.messages.map((each): SamplingMessage => {
    if (!isMessage(each))
      throw new TypeError('sample: each of "messages" must have a "role" and a "content"')
    const { content, ...message } = each
    if (typeof content === 'string' || !isList(content))
      return { ...message, content: block(content) }
    return { ...message, content: content.map(block) }
  })
  return { ...params, messages }
}

/** JavaScript code may pass anything. */
function isMessage(value: unknown): boolean {
  if (!isObject(value) || typeof value['role'] !== 'string') return false
  const { content } = value
  return typeof content === 'string' || (typeof content === 'object' && content !== null)
}

/** As `Array.isArray`, which does not know readonly arrays. */
function isList<Item>(value: Item | readonly Item[]): value is readonly Item[] {
  return Array.isArray(value)
}

/** JavaScript code may pass anything. */
function isQuestion(value: unknown): value is Question {
  return isObject(value) && ['form', 'url', 'sample', 'roots'].includes(String(value['kind']))
}

/** The required capabilities that a client has not declared; undefined if it has all. */
export function missingCapabilities(
  capabilities: Readonly<Record<string, unknown>>,
  { requires }: QuestionRequest,
): QuestionRequest['requires'] | undefined {
  for (const [name, parts] of Object.entries(requires)) {
    const declared = capabilities[name]
    if (!isObject(declared)) return requires
    for (const part of Object.keys(parts)) {
      // An elicitation capability that names no mode means forms.
      const implied = part === 'form' && declared['url'] === undefined
      if (declared[part] === undefined && !implied) return requires
    }
  }
  return undefined
}

/**
 * Tool results follow the tool uses that they answer, in a message of their own.
 * https://modelcontextprotocol.io/specification/2026-07-28/client/sampling#tool-use-and-result-balance
 */
function checkToolResults({ messages }: CreateMessageParams): void {
  let owed = new Set<string>()
  for (const { content } of messages) {
    const blocks = Array.isArray(content) ? content : [content]
    const results = blocks.filter((block) => block.type === 'tool_result')
    if (results.length > 0 && results.length < blocks.length)
      throw new TypeError('A message with tool results must have nothing else')
    for (const { toolUseId } of results) {
      if (!owed.delete(toolUseId))
        throw new TypeError(`The tool result ${toolUseId} answers no tool use before it`)
    }
    if (owed.size > 0)
      throw new TypeError(`The tool use ${[...owed].join(', ')} has no result in the next message`)
    owed = new Set(blocks.flatMap((block) => (block.type === 'tool_use' ? [block.id] : [])))
  }
}

/** The error of a question that must be answered. */
export function declinedError(key: string, action: DeclinedError['action']): DeclinedError {
  const how = action === 'cancel' ? 'cancelled' : 'declined'
  return new DeclinedError(key, action, `The user ${how} "${key}"`)
}

/** Parses the answer of a client. */
export async function parseAnswer(question: Question, response: unknown): Promise<ParsedAnswer> {
  if (!isObject(response)) return { invalid: 'it is not an object' }
  switch (question.kind) {
    case 'form':
    case 'url': {
      const { action, content = {} } = response
      if (action === 'decline' || action === 'cancel') return { declined: action }
      if (action !== 'accept') return { invalid: 'its action must be accept, decline or cancel' }
      if (question.kind === 'url') return { value: true }
      if (!isObject(content)) return { invalid: 'its content must be an object' }
      const outcome = await formChecker(question.schema).check(content)
      if (outcome.issues === undefined) return { value: outcome.value }
      return { invalid: describeIssues(outcome.issues) }
    }
    case 'sample':
      return isCreateMessageResult(response)
        ? { value: response }
        : { invalid: 'it must be a message with a role, content and a model' }
    case 'roots': {
      const { roots } = response
      return Array.isArray(roots) && roots.every(isRoot)
        ? { value: roots }
        : { invalid: '"roots" must be an array of objects with a "uri"' }
    }
  }
}

function isRoot(value: unknown): value is Root {
  return isObject(value) && typeof value['uri'] === 'string' && isTextOrMissing(value['name'])
}

function isCreateMessageResult(value: unknown): value is CreateMessageResult {
  if (!isObject(value)) return false
  const { role, content, model, stopReason } = value
  const blocks: unknown[] = Array.isArray(content) ? content : [content]
  const named = (role === 'user' || role === 'assistant') && typeof model === 'string'
  return named && isTextOrMissing(stopReason) && blocks.every(isSamplingContent)
}

/** The required string members of each content type; `input` and `content` are checked in `isSamplingContent`. */
const TEXTS: ReadonlyMap<unknown, readonly string[]> = new Map([
  ['text', ['text']],
  ['image', ['data', 'mimeType']],
  ['audio', ['data', 'mimeType']],
  ['tool_use', ['id', 'name']],
  ['tool_result', ['toolUseId']],
])

function isSamplingContent(value: unknown): value is SamplingContent {
  if (
    !isObject(value) ||
    TEXTS.get(value['type'])?.every((name) => typeof value[name] === 'string') !== true
  )
    return false
  if (value['type'] === 'tool_use') return isObject(value['input'])
  return value['type'] !== 'tool_result' || Array.isArray(value['content'])
}

function isTextOrMissing(value: unknown): boolean {
  return value === undefined || typeof value === 'string'
}

import type { UnreadableId } from '../../jsonrpc/message.js'
import type { ContentType } from '../model.js'

/** Which methods each side may send. */
interface Methods {
  clientRequests: readonly string[]
  clientNotifications: readonly string[]
  serverRequests: readonly string[]
  serverNotifications: readonly string[]
}

/** The members of the protocol's objects; others are not sent. */
export interface Fields {
  tool: readonly string[]
  toolAnnotations: readonly string[]
  implementation: readonly string[]
  annotations: readonly string[]
  icon: readonly string[]
  text: readonly string[]
  image: readonly string[]
  audio: readonly string[]
  resource_link: readonly string[]
  resource: readonly string[]
  resourceContents: readonly string[]
  resourceListing: readonly string[]
  resourceTemplate: readonly string[]
  prompt: readonly string[]
  promptArgument: readonly string[]
  capabilities: readonly string[]
  progress: readonly string[]
  completion: readonly string[]
  /** The kinds of fields that a form may have. */
  formString: readonly string[]
  formNumber: readonly string[]
  formBoolean: readonly string[]
  formEnum: readonly string[]
  formMultiEnum: readonly string[]
  sampling: readonly string[]
  samplingMessage: readonly string[]
  root: readonly string[]
}

/**
 * A dated revision of the protocol, as facts. Code asks for a fact, never for
 * the date; `id` is for messages and logs.
 */
export interface Revision {
  readonly id: string
  /** How a client opens: with `initialize`, or with `_meta` in each request. */
  readonly lifecycle: 'handshake' | 'stateless'
  readonly batches: boolean
  /** The id of an error response to an unreadable request. */
  readonly unreadableId: UnreadableId
  readonly methods: Methods
  /** Methods of the specification that ccmcp does not serve, and why. */
  readonly unsupportedMethods: Readonly<Record<string, string>>
  readonly contentTypes: readonly ContentType[]
  /** The structured content of a tool result. */
  readonly structuredContent: 'none' | 'object' | 'any'
  /** The error code of a missing resource. */
  readonly resourceNotFound: number
  /** Whether HTTP requests have the header `MCP-Protocol-Version`. */
  readonly versionHeader: boolean
  /** Whether HTTP clients reconnect to a stream that the server has closed. */
  readonly polling: boolean
  /** How a server asks its client: by a request, or by an `input_required` result. */
  readonly asksBy: 'request' | 'result'
  /** Whether elicitation has URLs, and whether they need an `elicitationId`. */
  readonly urlElicitation: 'none' | 'identified' | 'plain'
  /** Whether sampling has tools, and several content blocks in a message. */
  readonly samplingTools: boolean
  /** Whether results have `resultType`, server info and caching hints. */
  readonly typedResults: boolean
  readonly fields: Fields
}

/** What a revision changed: new values for plain facts, additions to lists, and what was removed from them. */
export interface RevisionChanges extends Partial<
  Omit<Revision, 'id' | 'methods' | 'fields' | 'contentTypes'>
> {
  id: string
  methods?: Partial<Methods>
  fields?: Partial<Fields>
  contentTypes?: readonly ContentType[]
  removed?: { methods?: Partial<Methods>; fields?: Partial<Fields> }
}

/** A revision, written as its changelog on the one before. Throws if something is removed that is not there. */
export function revise(
  before: Revision,
  { methods, fields, contentTypes, removed, ...properties }: RevisionChanges,
): Revision {
  return {
    ...before,
    ...properties,
    methods: change(before.methods, methods, removed?.methods),
    fields: change(before.fields, fields, removed?.fields),
    contentTypes: [...before.contentTypes, ...(contentTypes ?? [])],
  }
}

function change<Lists extends { [Key in keyof Lists]: readonly string[] }>(
  before: Lists,
  added: Partial<Lists> = {},
  removed: Partial<Lists> = {},
): Lists {
  const lists = { ...before }
  for (const key in before) {
    const gone: readonly string[] = removed[key] ?? []
    const missing = gone.find((name) => !before[key].includes(name))
    if (missing !== undefined)
      throw new TypeError(`revise: ${key} has no "${missing}" to be removed`)
    const list = [...before[key].filter((name) => !gone.includes(name)), ...(added[key] ?? [])]
    lists[key] = list as unknown as Lists[typeof key] // a list of names, as before
  }
  return lists
}

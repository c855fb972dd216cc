/** Session state that a request sets: the request is repeated when a session is restored. */
export interface SessionEffect {
  /** The parameter that is stored; its value is a string. */
  readonly param: string
  /** What is sent again: the last request, one request per value, or nothing, because the request undoes another method. */
  readonly keep: 'last' | 'each' | { readonly undoes: string }
}

/** The properties of a request method. Extensions add rows of their own. */
export interface MethodDescriptor {
  /** The parameter that names the target of the request; over HTTP it is repeated in `Mcp-Name`. */
  readonly nameParam?: string
  /** Whether its arguments may be repeated in `Mcp-Param-…` headers. */
  readonly paramHeaders?: boolean
  /** Whether a server may respond with `input_required`. */
  readonly mayRequireInput?: boolean
  /** Whether it is served immediately, also while other requests wait: hosts end a server that does not respond to a ping. */
  readonly urgent?: boolean
  /** The server capability that it belongs to. */
  readonly capability?: string
  /** Whose caching hints its result carries: those of the server for lists, or those of the definition. */
  readonly cache?: 'list' | 'definition'
  /** Whether its response is a stream that stays open until the request is cancelled. */
  readonly stream?: boolean
  /** What it changes in the state of a session. */
  readonly session?: SessionEffect
}

const list = (capability: string): MethodDescriptor => ({ capability, cache: 'list' })

/** The methods of the core protocol. Which of them a revision has is data of the revision. */
export const METHODS: ReadonlyMap<string, MethodDescriptor> = new Map<string, MethodDescriptor>([
  ['initialize', {}],
  ['ping', { urgent: true }],
  ['server/discover', { cache: 'list' }],
  ['tools/list', list('tools')],
  [
    'tools/call',
    { capability: 'tools', nameParam: 'name', paramHeaders: true, mayRequireInput: true },
  ],
  ['resources/list', list('resources')],
  ['resources/templates/list', list('resources')],
  [
    'resources/read',
    { capability: 'resources', nameParam: 'uri', mayRequireInput: true, cache: 'definition' },
  ],
  ['resources/subscribe', { capability: 'resources', session: { param: 'uri', keep: 'each' } }],
  [
    'resources/unsubscribe',
    {
      capability: 'resources',
      session: { param: 'uri', keep: { undoes: 'resources/subscribe' } },
    },
  ],
  ['prompts/list', list('prompts')],
  ['prompts/get', { capability: 'prompts', nameParam: 'name', mayRequireInput: true }],
  ['completion/complete', { capability: 'completions' }],
  ['logging/setLevel', { capability: 'logging', session: { param: 'level', keep: 'last' } }],
  ['subscriptions/listen', { stream: true }],
])

/** What the protocol says of a request method, whoever serves it. Extensions add rows of their own. */
export interface MethodFacts {
  /** The parameter that names the target of the request; over HTTP it is repeated in `Mcp-Name`. */
  readonly nameParam?: string
  /** Whether a server may answer with `input_required`. */
  readonly mayAsk?: boolean
  /** Whether it is served at once, also while other requests wait: hosts end a server that does not answer a ping. */
  readonly urgent?: boolean
  /** The server capability that it belongs to. */
  readonly capability?: string
  /** Whose caching hints its result carries: those of the server for lists, or those of the definition. */
  readonly cache?: 'list' | 'definition'
  /** Whether its response is a stream that stays open until the request is cancelled. */
  readonly stream?: boolean
}

/** The methods of the core protocol. Which of them a revision has is a fact of the revision. */
export const METHODS: ReadonlyMap<string, MethodFacts> = new Map<string, MethodFacts>([
  ['initialize', {}],
  ['ping', { urgent: true }],
  ['server/discover', { cache: 'list' }],
  ['tools/list', { capability: 'tools', cache: 'list' }],
  ['tools/call', { capability: 'tools', nameParam: 'name', mayAsk: true }],
  ['resources/list', { capability: 'resources', cache: 'list' }],
  ['resources/templates/list', { capability: 'resources', cache: 'list' }],
  [
    'resources/read',
    { capability: 'resources', nameParam: 'uri', mayAsk: true, cache: 'definition' },
  ],
  ['resources/subscribe', { capability: 'resources' }],
  ['resources/unsubscribe', { capability: 'resources' }],
  ['prompts/list', { capability: 'prompts', cache: 'list' }],
  ['prompts/get', { capability: 'prompts', nameParam: 'name', mayAsk: true }],
  ['completion/complete', { capability: 'completions' }],
  ['logging/setLevel', { capability: 'logging' }],
  ['subscriptions/listen', { stream: true }],
])

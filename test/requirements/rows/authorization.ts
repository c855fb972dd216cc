import { modern, revisions, type Row } from '../row.js'

const march = revisions('2025-03-26', '2025-03-26')
const june = revisions('2025-06-18', '2025-06-18')
const november = revisions('2025-11-25', '2025-11-25')
const untilJune = revisions('2025-03-26', '2025-06-18')
const sinceMarch = revisions('2025-03-26')
const sinceJune = revisions('2025-06-18')
const sinceNovember = revisions('2025-11-25')

const page = (anchor: string, dates: readonly string[]) => ({
  [`basic/authorization#${anchor}`]: dates,
})
const discovery = (anchor: string) => ({
  [`basic/authorization/authorization-server-discovery#${anchor}`]: modern,
})
const registration = (anchor: string) => ({
  [`basic/authorization/client-registration#${anchor}`]: modern,
})
/** A section that the last revision has on a page of its own. */
const security = (anchor: string, first: '2025-06-18' | '2025-11-25' = '2025-06-18') => ({
  ...page(anchor, revisions(first, '2025-11-25')),
  [`basic/authorization/security-considerations#${anchor}`]: modern,
})
const LOCATION = 'authorization-server-location'
const METADATA = 'protected-resource-metadata-discovery-requirements'
const SCOPES = 'scope-selection-strategy'
const RESPONSES = 'authorization-response-validation'

const general: readonly Row[] = [
  {
    id: 'auth.http',
    levels: ['SHOULD'],
    at: page('protocol-requirements', sinceMarch),
    says: 'Over HTTP, authorization is as specified.',
  },
  {
    id: 'auth.stdio',
    levels: ['SHOULD NOT'],
    at: page('protocol-requirements', sinceMarch),
    says: 'Over stdio there is no such authorization.',
  },
  {
    id: 'auth.transports',
    levels: ['MUST'],
    at: page('protocol-requirements', sinceMarch),
    says: 'Other transports follow the security practices of their protocol.',
    unbound: 'transport',
  },
  {
    id: 'auth.best-practices',
    levels: ['MUST'],
    at: {
      ...page('overview', march),
      ...page('implementation-requirements', march),
      ...page('security-considerations', sinceMarch),
      'basic/authorization/security-considerations#': modern,
    },
    says: 'OAuth 2.1 is used with its security measures: the code flow, PKCE, exact redirect URIs.',
  },
  {
    id: 'auth.consider',
    levels: ['MUST'],
    at: { 'basic/authorization/security-considerations#': modern },
    says: 'Implementers consider the security requirements of the page.',
    unbound: 'reading',
  },
  {
    id: 'auth.communication',
    levels: ['MUST'],
    at: security('communication-security'),
    says: 'Tokens and credentials are only sent over TLS, except within the computer.',
  },
  {
    id: 'auth.https',
    levels: ['MUST'],
    at: { ...page('security-considerations', march), ...security('communication-security') },
    says: 'Endpoints of authorization servers use https; others are not used.',
  },
  {
    id: 'auth.redirect-https',
    levels: ['MUST'],
    at: { ...page('security-considerations', march), ...security('communication-security') },
    says: 'Redirect URIs are on localhost or use https.',
  },
]

const server: readonly Row[] = [
  {
    id: 'auth.resource-metadata-served',
    levels: ['MUST'],
    at: {
      ...page('overview', sinceJune),
      ...page(LOCATION, revisions('2025-06-18', '2025-11-25')),
      ...discovery(LOCATION),
    },
    says: 'Servers serve protected resource metadata.',
  },
  {
    id: 'auth.authorization-servers',
    levels: ['MUST'],
    at: { ...page(LOCATION, revisions('2025-06-18', '2025-11-25')), ...discovery(LOCATION) },
    says: 'The metadata names at least one authorization server.',
  },
  {
    id: 'auth.challenge-metadata',
    levels: ['MUST'],
    at: { ...page(LOCATION, june), ...page(METADATA, november), ...discovery(METADATA) },
    says: 'The challenge of a 401 names the URL of the metadata.',
  },
  {
    id: 'auth.challenge-scope',
    levels: ['SHOULD'],
    at: { ...page(METADATA, november), ...page(SCOPES, modern) },
    says: 'The challenge names the scopes that are required.',
  },
  {
    id: 'auth.scope-consistency',
    levels: ['SHOULD'],
    at: {
      ...page(METADATA, november),
      ...page(SCOPES, modern),
      ...page('runtime-insufficient-scope-errors', sinceNovember),
    },
    says: 'Servers are consistent in the scopes that they name.',
    unbound: 'operator',
  },
  {
    id: 'auth.scope-experience',
    levels: ['SHOULD'],
    at: page('runtime-insufficient-scope-errors', sinceNovember),
    says: 'Servers choose scopes with their users in mind.',
    unbound: 'operator',
  },
  {
    id: 'auth.401',
    levels: ['MUST'],
    at: {
      ...page('example-authorization-code-grant', march),
      ...page('token-handling', sinceMarch),
    },
    says: 'A request without a valid token gets 401.',
  },
  {
    id: 'auth.validate',
    levels: ['MUST'],
    at: {
      ...page('token-handling', sinceMarch),
      ...security('access-token-privilege-restriction'),
    },
    says: 'Servers validate access tokens.',
  },
  {
    id: 'auth.validate-first',
    levels: ['MUST'],
    at: security('access-token-privilege-restriction'),
    says: 'Tokens are validated before a request is processed.',
  },
  {
    id: 'auth.validation-errors',
    levels: ['MUST'],
    at: page('token-handling', sinceMarch),
    says: 'A token that is not valid is refused with the errors of OAuth.',
  },
  {
    id: 'auth.audience',
    levels: ['MUST'],
    at: {
      ...page('token-handling', sinceJune),
      ...security('token-audience-binding-and-validation'),
    },
    says: 'Servers validate that they are the audience of a token.',
  },
  {
    id: 'auth.audience-only',
    levels: ['MUST', 'MUST'],
    at: security('access-token-privilege-restriction'),
    says: 'Servers accept tokens for themselves only, and reject all others.',
  },
  {
    id: 'auth.own-tokens',
    levels: ['MUST', 'MUST NOT'],
    at: page('token-handling', sinceJune),
    says: 'Servers only accept tokens for their own resources, and pass on no others.',
  },
  {
    id: 'auth.passthrough',
    levels: ['MUST NOT'],
    at: security('access-token-privilege-restriction'),
    says: 'Servers do not pass a token on to other services.',
    unbound: 'operator',
  },
  {
    id: 'auth.statuses',
    levels: ['MUST'],
    at: page('error-handling', sinceMarch),
    says: 'Status 401 means no valid token, 403 too few scopes, 400 a malformed request.',
  },
  {
    id: 'auth.insufficient-scope',
    levels: ['SHOULD', 'SHOULD'],
    at: page('runtime-insufficient-scope-errors', sinceNovember),
    says: 'Too few scopes lead to 403 with `insufficient_scope` and the scopes that are needed.',
  },
  {
    id: 'auth.single-challenge',
    levels: ['SHOULD'],
    at: page('runtime-insufficient-scope-errors', modern),
    says: 'One challenge names all scopes of the operation.',
  },
  {
    id: 'auth.scope-hierarchies',
    levels: ['MUST'],
    at: page('step-up-authorization-flow', modern),
    says: 'Servers account for scopes that imply others.',
  },
  {
    id: 'auth.server-offline-access',
    levels: ['SHOULD NOT'],
    at: page('refresh-tokens', modern),
    says: 'Servers do not list `offline_access`.',
    unbound: 'operator',
  },
]

const discovering: readonly Row[] = [
  {
    id: 'auth.discovery',
    levels: ['MUST'],
    at: page('authorization-server-discovery', modern),
    says: 'Discovery is as its page specifies.',
  },
  {
    id: 'auth.resource-metadata',
    levels: ['MUST'],
    at: page('overview', sinceJune),
    says: 'Clients find the authorization server with the protected resource metadata.',
  },
  {
    id: 'auth.parse-challenge',
    levels: ['MUST'],
    at: { ...page(LOCATION, june), ...page(METADATA, november), ...discovery(METADATA) },
    says: 'Clients parse `WWW-Authenticate` and respond to 401.',
  },
  {
    id: 'auth.metadata-locations',
    levels: ['MUST', 'MUST'],
    at: { ...page(METADATA, november), ...discovery(METADATA) },
    says: 'Clients use the metadata URL of the challenge, else the well-known URLs: by path, then at the root.',
  },
  {
    id: 'auth.server-metadata',
    levels: ['MUST'],
    at: { ...page('overview', sinceMarch), ...page('server-metadata-discovery', june) },
    says: 'Clients use the metadata of the authorization server.',
  },
  {
    id: 'auth.server-metadata-order',
    levels: ['MUST', 'MUST', 'MUST'],
    at: {
      ...page('authorization-server-metadata-discovery', november),
      ...discovery('authorization-server-metadata-discovery'),
    },
    says: 'Clients try the well-known URLs of an issuer, with and without a path, in the specified order.',
  },
  {
    id: 'auth.issuer-identical',
    levels: ['MUST', 'MUST', 'MUST NOT', 'MUST'],
    at: discovery('authorization-server-metadata-discovery'),
    says: 'Metadata with another issuer is not used.',
  },
  {
    id: 'auth.base-url',
    levels: ['MUST', 'MUST'],
    at: page('authorization-base-url', march),
    says: 'The metadata is at the root of the MCP server.',
  },
  {
    id: 'auth.default-endpoints',
    levels: ['MUST', 'MUST'],
    at: page('fallbacks-for-servers-without-metadata-discovery', march),
    says: 'Without metadata, which is tried first, clients use the default endpoints.',
  },
  {
    id: 'auth.separate-state',
    levels: ['MUST', 'MUST NOT'],
    at: discovery(LOCATION),
    says: 'Registrations and tokens are kept per authorization server, and used at no other.',
  },
]

const registering: readonly Row[] = [
  {
    id: 'auth.client-id',
    levels: ['MUST'],
    at: page('client-registration', modern),
    says: 'Clients have a client ID before they authorize.',
  },
  {
    id: 'auth.registration-order',
    levels: ['SHOULD'],
    at: { ...page('client-registration-approaches', november), ...registration('') },
    says: 'A pre-registered client comes first, then a metadata document, then dynamic registration.',
  },
  {
    id: 'auth.preregistration',
    levels: ['SHOULD'],
    at: { ...page('preregistration', november), ...registration('pre-registration') },
    says: 'Credentials of a pre-registered client can be configured.',
  },
  {
    id: 'auth.dynamic-registration',
    levels: ['SHOULD'],
    at: { ...page('overview', untilJune), ...page('dynamic-client-registration', untilJune) },
    says: 'Clients can register themselves.',
  },
  {
    id: 'auth.metadata-document',
    levels: ['SHOULD'],
    at: {
      ...page('overview', sinceNovember),
      ...page('client-id-metadata-documents', november),
      ...registration('client-id-metadata-documents'),
    },
    says: 'Clients support client ID metadata documents.',
  },
  {
    id: 'auth.metadata-document-url',
    levels: ['MUST', 'MUST'],
    at: {
      ...page('implementation-requirements', november),
      ...registration('implementation-requirements'),
    },
    says: 'The URL of a metadata document uses https and has a path.',
  },
  {
    id: 'auth.metadata-document-content',
    levels: ['MUST', 'MUST', 'MUST'],
    at: {
      ...page('implementation-requirements', november),
      ...registration('implementation-requirements'),
    },
    says: 'The document is hosted at its `client_id`, with `client_name` and `redirect_uris`.',
    unbound: 'host',
  },
  {
    id: 'auth.metadata-document-server',
    levels: ['SHOULD', 'MUST', 'SHOULD', 'MUST', 'MUST', 'SHOULD'],
    at: {
      ...page('implementation-requirements', november),
      ...registration('implementation-requirements'),
    },
    says: 'Authorization servers fetch, cache and validate the document.',
    unbound: 'authorizationServer',
  },
  {
    id: 'auth.metadata-document-support',
    levels: ['SHOULD'],
    at: { ...page('discovery', november), ...registration('advertising-cimd-support') },
    says: 'Clients use a metadata document only if the authorization server supports them.',
  },
  {
    id: 'auth.application-type',
    levels: ['MUST', 'SHOULD', 'SHOULD'],
    at: registration('application-type-and-redirect-uri-constraints'),
    says: 'A registration has the `application_type` `native` for localhost, else `web`.',
  },
  {
    id: 'auth.registration-failure',
    levels: ['MUST', 'SHOULD'],
    at: registration('application-type-and-redirect-uri-constraints'),
    says: 'A refused registration leads to an error that says what to do.',
  },
  {
    id: 'auth.binding',
    levels: ['MUST', 'MUST NOT', 'MUST'],
    at: registration('authorization-server-binding'),
    says: 'Client credentials belong to an issuer; another authorization server gets a new registration.',
  },
  {
    id: 'auth.binding-preregistered',
    levels: ['SHOULD'],
    at: registration('authorization-server-binding'),
    says: 'Configured credentials for another authorization server lead to an error.',
  },
  {
    id: 'auth.redirects-registered',
    levels: ['MUST'],
    at: security('open-redirection'),
    says: 'Redirect URIs are registered.',
  },
]

const authorizing: readonly Row[] = [
  {
    id: 'auth.pkce-required',
    levels: ['REQUIRED'],
    at: page('implementation-requirements', march),
    says: 'Clients use PKCE.',
  },
  {
    id: 'auth.pkce',
    levels: ['MUST'],
    at: security('authorization-code-protection'),
    says: 'Clients use PKCE.',
  },
  {
    id: 'auth.pkce-s256',
    levels: ['MUST'],
    at: security('authorization-code-protection', '2025-11-25'),
    says: 'The code challenge method is S256.',
  },
  {
    id: 'auth.pkce-metadata',
    levels: ['MUST', 'MUST', 'MUST', 'MUST', 'MUST'],
    at: security('authorization-code-protection', '2025-11-25'),
    says: 'An authorization server whose metadata of either kind does not list PKCE methods is refused.',
  },
  {
    id: 'auth.state',
    levels: ['SHOULD'],
    at: security('open-redirection'),
    says: 'A response without the `state` of the request is discarded.',
  },
  {
    id: 'auth.expected-issuer',
    levels: ['MUST'],
    at: page(RESPONSES, modern),
    says: 'The issuer of the validated metadata is recorded with the code verifier.',
  },
  {
    id: 'auth.iss',
    levels: ['MUST'],
    at: page(RESPONSES, modern),
    says: 'The `iss` of a response is validated before the code is sent.',
  },
  {
    id: 'auth.iss-exact',
    levels: ['MUST NOT'],
    at: page(RESPONSES, modern),
    says: '`iss` is compared without normalization.',
  },
  {
    id: 'auth.iss-errors',
    levels: ['MUST NOT'],
    at: page(RESPONSES, modern),
    says: 'An error response of another issuer is neither used nor shown.',
  },
  {
    id: 'auth.iss-future',
    levels: ['SHOULD', 'MUST'],
    at: page(RESPONSES, modern),
    says: 'A future revision may require `iss`.',
    unbound: 'reading',
  },
  {
    id: 'auth.resource-parameter',
    levels: ['MUST', 'MUST', 'MUST', 'MUST'],
    at: page('resource-parameter-implementation', sinceJune),
    says: 'Authorization and token requests have the `resource` parameter: the URI of the MCP server.',
  },
  {
    id: 'auth.resource',
    levels: ['MUST'],
    at: {
      ...page('canonical-server-uri', sinceJune),
      ...security('token-audience-binding-and-validation'),
      ...security('access-token-privilege-restriction'),
    },
    says: 'The `resource` parameter is always sent.',
  },
  {
    id: 'auth.resource-specific',
    levels: ['SHOULD'],
    at: page('canonical-server-uri', sinceJune),
    says: 'The resource is the most specific URI that is known: that of the metadata, else the URL with its path.',
  },
  {
    id: 'auth.resource-case',
    levels: ['SHOULD'],
    at: page('canonical-server-uri', sinceJune),
    says: 'Scheme and host of a resource may be in upper case.',
  },
  {
    id: 'auth.resource-slash',
    levels: ['SHOULD'],
    at: page('canonical-server-uri', sinceJune),
    says: 'The resource has no trailing slash.',
  },
]

const scopes: readonly Row[] = [
  {
    id: 'auth.scope-order',
    levels: ['SHOULD', 'SHOULD'],
    at: page(SCOPES, sinceNovember),
    says: 'Clients request the scopes of the challenge, else those of the metadata, else none.',
  },
  {
    id: 'auth.scope-fallback',
    levels: ['SHOULD'],
    at: page(METADATA, november),
    says: 'Without scopes in the challenge, those of the metadata are requested.',
  },
  {
    id: 'auth.scope-challenge',
    levels: ['MUST NOT', 'MUST'],
    at: { ...page(METADATA, november), ...page(SCOPES, modern) },
    says: 'The scopes of the challenge count, whatever the metadata lists.',
  },
  {
    id: 'auth.scope-union',
    levels: ['SHOULD'],
    at: page(SCOPES, modern),
    says: 'A new authorization requests the scopes of the previous one too.',
  },
  {
    id: 'auth.step-up',
    levels: ['SHOULD', 'SHOULD'],
    at: page('step-up-authorization-flow', sinceNovember),
    says: '`insufficient_scope` leads to an authorization with more scopes.',
  },
  {
    id: 'auth.step-up-limits',
    levels: ['SHOULD', 'SHOULD'],
    at: page('step-up-authorization-flow', sinceNovember),
    says: 'Clients limit their attempts, and do not repeat one that failed.',
  },
]

const tokens: readonly Row[] = [
  {
    id: 'auth.token-header',
    levels: ['MUST', 'MUST'],
    at: page('token-requirements', sinceMarch),
    says: 'Clients send the token in the `Authorization` header.',
  },
  {
    id: 'auth.every-request',
    levels: ['MUST'],
    at: page('token-requirements', sinceMarch),
    says: 'Every HTTP request has the token.',
  },
  {
    id: 'auth.no-query',
    levels: ['MUST NOT'],
    at: page('token-requirements', sinceMarch),
    says: 'No token is in a URL.',
  },
  {
    id: 'auth.other-issuers',
    levels: ['MUST NOT'],
    at: page('token-handling', sinceJune),
    says: 'A server only gets tokens of its own authorization server.',
  },
  {
    id: 'auth.storage',
    levels: ['MUST'],
    at: { ...page('security-considerations', march), ...security('token-theft') },
    says: 'Tokens are stored securely.',
  },
  {
    id: 'auth.refresh-confidential',
    levels: ['MUST'],
    at: page('refresh-tokens', modern),
    says: 'Refresh tokens are confidential in transit and storage.',
  },
  {
    id: 'auth.refresh-grant',
    levels: ['SHOULD'],
    at: page('refresh-tokens', modern),
    says: 'A registration has the grant type `refresh_token`.',
  },
  {
    id: 'auth.refresh-optional',
    levels: ['MUST NOT'],
    at: page('refresh-tokens', modern),
    says: 'Clients work without refresh tokens.',
  },
]

/** What binds others. */
const others: readonly Row[] = [
  {
    id: 'auth.server-oauth',
    levels: ['MUST'],
    at: page('overview', sinceJune),
    says: 'Authorization servers implement OAuth 2.1.',
    unbound: 'authorizationServer',
  },
  {
    id: 'auth.server-provides-metadata',
    levels: ['MUST'],
    at: page('overview', sinceMarch),
    says: 'Authorization servers have metadata, or in the first revision the default endpoints.',
    unbound: 'authorizationServer',
  },
  {
    id: 'auth.server-should-provide-metadata',
    levels: ['SHOULD'],
    at: page('overview', march),
    says: 'Servers that are their own authorization server have metadata.',
    unbound: 'authorizationServer',
  },
  {
    id: 'auth.server-grants',
    levels: ['SHOULD'],
    at: page('oauth-grant-types', march),
    says: 'Authorization servers support the grant types of their audience.',
    unbound: 'authorizationServer',
  },
  {
    id: 'auth.server-rotation',
    levels: ['SHOULD'],
    at: {
      ...page('security-considerations', march),
      ...page('implementation-requirements', march),
    },
    says: 'Tokens expire and are rotated.',
    unbound: 'authorizationServer',
  },
  {
    id: 'auth.server-lifetimes',
    levels: ['SHOULD'],
    at: { ...page('implementation-requirements', march), ...security('token-theft') },
    says: 'Access tokens have a short life.',
    unbound: 'authorizationServer',
  },
  {
    id: 'auth.server-refresh-rotation',
    levels: ['MUST'],
    at: security('token-theft'),
    says: 'Refresh tokens of public clients are rotated.',
    unbound: 'authorizationServer',
  },
  {
    id: 'auth.server-redirects',
    levels: ['MUST'],
    at: { ...page('security-considerations', march), ...security('open-redirection') },
    says: 'Authorization servers validate redirect URIs.',
    unbound: 'authorizationServer',
  },
  {
    id: 'auth.server-user-agents',
    levels: ['MUST', 'SHOULD'],
    at: security('open-redirection'),
    says: 'Authorization servers only redirect to URIs that they trust.',
    unbound: 'authorizationServer',
  },
  {
    id: 'auth.server-pkce',
    levels: ['MUST'],
    at: security('authorization-code-protection', '2025-11-25'),
    says: 'OpenID providers list their PKCE methods.',
    unbound: 'authorizationServer',
  },
  {
    id: 'auth.server-iss',
    levels: ['SHOULD', 'MUST'],
    at: page(RESPONSES, modern),
    says: 'Authorization servers send `iss`, and say so in their metadata.',
    unbound: 'authorizationServer',
  },
  {
    id: 'auth.server-documents',
    levels: ['MUST'],
    at: security('client-id-metadata-document-security', '2025-11-25'),
    says: 'Authorization servers consider the risks of metadata documents.',
    unbound: 'authorizationServer',
  },
  {
    id: 'auth.server-request-forgery',
    levels: ['SHOULD'],
    at: security('authorization-server-abuse-protection', '2025-11-25'),
    says: 'Authorization servers consider request forgery when they fetch a document.',
    unbound: 'authorizationServer',
  },
  {
    id: 'auth.server-localhost',
    levels: ['SHOULD', 'MUST'],
    at: security('localhost-redirect-uri-risks', '2025-11-25'),
    says: 'Authorization servers show the host of the redirect URI, and warn about localhost.',
    unbound: 'authorizationServer',
  },
  {
    id: 'auth.third-party',
    levels: ['MUST'],
    at: {
      ...page('session-binding-requirements', march),
      ...page('security-considerations', march),
    },
    says: 'Servers that delegate to a third party validate and bind its tokens.',
    unbound: 'authorizationServer',
  },
  {
    id: 'auth.confused-deputy',
    levels: ['MUST'],
    at: security('confused-deputy-problem'),
    says: 'Proxies with one client ID ask the user for each registered client.',
    unbound: 'intermediary',
  },
]

export const authorization: readonly Row[] = [
  ...general,
  ...server,
  ...discovering,
  ...registering,
  ...authorizing,
  ...scopes,
  ...tokens,
  ...others,
]

export { AuthorizationError, AuthorizationRequiredError } from './client/auth/errors.js'
export type { ClientKey } from './client/auth/client-authentication.js'
export {
  type AssertionRequest,
  type EnterpriseOptions,
  type Grant,
  clientCredentials,
  enterpriseManaged,
  jwtBearer,
} from './client/auth/grants.js'
export { type OAuth, oauth } from './client/auth/oauth.js'
export type { OAuthOptions } from './client/auth/options.js'
export type { ClientOptions } from './client/auth/registration.js'
export { type ClientAuthMethod, type TokenStore, memoryTokenStore } from './client/auth/store.js'

/** Why the server could not be reached. */
export interface Failure {
  phase: 'dns' | 'connect' | 'tls' | 'proxy' | 'response'
  code: string
  message: string
}

const DNS = /^(?:ENOTFOUND|EAI_\w+)$/
const CONNECT =
  /^(?:ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|EADDRNOTAVAIL|EACCES|EPERM|ENETDOWN)$/
const TLS =
  /^(?:ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|HOSTNAME_MISMATCH|EPROTO|INVALID_CA|CRL_)/

/** Classifies an error of a request to the server. */
export function failureOf(error: Error): Failure {
  const inner = error instanceof AggregateError ? (error.errors as Error[])[0] : undefined
  const { message } = error.message === '' && inner !== undefined ? inner : error
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  return { phase: phaseOf(code, message), code, message }
}

function phaseOf(code: string, message: string): Failure['phase'] {
  if (DNS.test(code)) return 'dns'
  if (CONNECT.test(code)) return 'connect'
  if (TLS.test(code)) return 'tls'
  return message.startsWith('The proxy') ? 'proxy' : 'response'
}

const ADVICE = {
  dns: 'check the host name',
  connect: 'check that the server runs, and its port',
  tls: 'if its certificate is from your own authority, pass that with --ca FILE',
  proxy: 'check HTTPS_PROXY and NO_PROXY',
  response: 'the server sent no valid HTTP response',
} as const satisfies Record<Failure['phase'], string>

/** What is wrong and what to do, for the client. */
export function describeFailure({ phase, message }: Failure, server: string): string {
  return `cannot reach ${server}: ${message}; ${ADVICE[phase]}`
}

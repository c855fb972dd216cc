import { describe, expect, it } from 'vitest'
import { Secrets } from '../../src/auth/secrets.js'
import { type Credentials, explainFailure } from '../../src/cli/http-failure.js'
import { ChannelClosedError, ConnectionError, RequestFailedError } from '../../src/client.js'

/* What the command line says of a failed request to a URL. */

const URL_ = new URL('https://notes.example/mcp?a=b')
const AT = 'https://notes.example/mcp'
const RAN = '; the server may have executed the request'
const credentials = (changes: Partial<Credentials> = {}): Credentials => ({
  variable: undefined,
  secrets: new Secrets(),
  challenge: undefined,
  ...changes,
})
const explained = (error: Error, changes?: Partial<Credentials>) =>
  explainFailure(error, URL_, credentials(changes))

const failure = (
  code: RequestFailedError['code'],
  executed: 'no' | 'maybe',
  message: string,
  facts: { status?: number; cause?: unknown } = {},
) => new RequestFailedError(code, message, { executed, ...facts })
const status = (code: number, executed: 'no' | 'maybe' = 'no') =>
  failure('HTTP_STATUS', executed, `The server responded with HTTP ${code}: x`, { status: code })
const coded = (code: string) => Object.assign(new Error('connect'), { code })

describe('a request', () => {
  it.each([
    ['of a stream that ended', failure('STREAM_ENDED', 'maybe', 'It ended'), `It ended${RAN}`],
    ['that was not sent', failure('SESSION_EXPIRED', 'no', 'It ended'), 'It ended'],
    [
      'whose session has ended',
      failure('SESSION_EXPIRED', 'maybe', 'It ended', { status: 404 }),
      `It ended${RAN}`,
    ],
    ['that the server refuses', status(403), 'HTTP 403 ("x"): the server refuses access'],
    [
      'at which the server fails',
      status(500, 'maybe'),
      `HTTP 500 ("x"): the server has failed. Try again later, or look into its log${RAN}`,
    ],
    [
      'whose connection broke',
      failure('NETWORK', 'maybe', 'no', { cause: coded('ECONNRESET') }),
      `the connection was closed. Try again later${RAN}`,
    ],
    [
      'that found no server',
      failure('NETWORK', 'no', 'no', { cause: coded('ECONNREFUSED') }),
      'nothing accepts connections at notes.example. Is the server running, and is this its port?',
    ],
    [
      'with a response that is too long',
      failure('TOO_LARGE', 'maybe', 'The response is longer than 9 bytes'),
      `The response is longer than 9 bytes${RAN}`,
    ],
    [
      'with a response of another kind',
      failure('INVALID_RESPONSE', 'maybe', 'It is nothing'),
      `It is nothing. It is probably not an MCP endpoint. Check the path of the URL; many servers use /mcp${RAN}`,
    ],
  ])('%s', (_case, error, text) => {
    expect(explained(error)).toBe(`Cannot use ${AT}: ${text}`)
  })

  it.each([
    [
      401,
      'the server requires authorization. Log in with "ccmcp login URL", or pass a token with --token-env NAME, or another header with --header',
    ],
    [403, 'the server refuses access'],
    [404, 'there is no MCP endpoint here. Check the path of the URL; many servers use /mcp'],
    [405, 'the server does not accept POST here. Check the path of the URL; many servers use /mcp'],
    [
      406,
      'the server does not accept MCP messages here. Check the path of the URL; many servers use /mcp',
    ],
    [
      407,
      'the proxy requires authorization. Put it into HTTPS_PROXY: http://USER:PASSWORD@HOST:PORT',
    ],
    [418, 'the server refuses the request. Check the path of the URL; many servers use /mcp'],
    [429, 'too many requests. Try again later'],
    [503, 'the server has failed. Try again later, or look into its log'],
  ])('refused with HTTP %i', (code, text) => {
    expect(explained(status(code))).toBe(`Cannot use ${AT}: HTTP ${code} ("x"): ${text}`)
  })
})

describe('a connection', () => {
  it('that failed has executed nothing, whatever its last request may have done', () => {
    const cause = failure('STREAM_ENDED', 'maybe', 'It ended')
    expect(explained(new ConnectionError('No connection', { cause }))).toBe(
      `Cannot use ${AT}: It ended`,
    )
    const closed = new ChannelClosedError('It is closed', { executed: 'maybe', cause })
    expect(explained(closed)).toBe(`Cannot use ${AT}: It ended`)
  })

  it('without a request that failed is explained by its own message', () => {
    expect(explained(new ConnectionError('No common revision\nThe URL is …'))).toBe(
      `No common revision (${AT})`,
    )
  })
})

describe('a challenge', () => {
  it.each([
    ['Bearer scope="a b", error_description="Old"', ' (scope "a b", Old)'],
    ['Bearer error="invalid_token"', ' (invalid_token)'],
    ['Bearer error_description="say \\"hello\\""', ' (say "hello")'],
    ['Bearer realm="x"', ''],
  ])('%s', (challenge, text) => {
    expect(explained(status(403), { challenge })).toBe(
      `Cannot use ${AT}: HTTP 403 ("x"): the server refuses access${text}`,
    )
  })
})

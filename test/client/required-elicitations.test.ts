import { describe, expect, it } from 'vitest'
import { RpcError, requiredElicitations } from '../../src/client.js'
import { ScriptedServer } from '../requirements/scripted-server.js'

const elicitation = {
  mode: 'url',
  message: 'Connect your drive',
  url: 'https://example.com/connect',
  elicitationId: 'e1',
}
const failure = (data: unknown, code = -32042) => new RpcError(code, 'no', data)

describe('requiredElicitations', () => {
  it('returns the URL elicitations of error −32042', () => {
    const second = { ...elicitation, elicitationId: 'e2' }
    expect(requiredElicitations(failure({ elicitations: [elicitation, second] }))).toEqual([
      elicitation,
      second,
    ])
  })

  it.each<[string, unknown]>([
    ['another code', failure({ elicitations: [elicitation] }, -32603)],
    ['another class', Object.assign(new Error('x'), { code: -32042, data: {} })],
    ['no data', failure(undefined)],
    ['elicitations that are not an array', failure({ elicitations: { 0: elicitation } })],
    ['an invalid member', failure({ elicitations: [elicitation, null] })],
    ['a form', failure({ elicitations: [{ ...elicitation, mode: 'form' }] })],
    ['no id', failure({ elicitations: [{ ...elicitation, elicitationId: undefined }] })],
    ['no URL', failure({ elicitations: [{ ...elicitation, url: 7 }] })],
  ])('returns nothing for an error with %s', (_, error) => {
    expect(requiredElicitations(error)).toEqual([])
  })
})

describe('a request that the server refuses with −32042', () => {
  it('rejects with the required URLs, and is not sent again', async () => {
    const data = { elicitations: [elicitation] }
    const server = new ScriptedServer('2025-11-25', {
      respond: () => ({ error: { code: -32042, message: 'Connect first', data } }),
    })
    const client = await server.connect({ elicit: () => ({ action: 'accept' }) })
    const error: unknown = await client.callTool('files').catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: -32042, message: 'Connect first', data })
    expect(requiredElicitations(error)).toEqual([elicitation])
    expect(server.paramsOf('tools/call')).toHaveLength(1)
  })
})

import { describe, expect, it } from 'vitest'
import { connect, memory } from '../../src/client.js'
import { createServer, resource } from '../../src/index.js'

const server = (uri: string) =>
  createServer({ name: 's', version: '1', resources: [resource({ uri, read: () => 'text' })] })

describe('URIs longer than 8192 characters', () => {
  it('are rejected in definitions', () => {
    expect(() => server(`note://${'a'.repeat(8192)}`)).toThrow(
      'the URI has more than 8192 characters',
    )
  })

  it('are read if only percent-encoding makes them longer', async () => {
    const client = await connect(memory(server(`note://${'a'.repeat(8000)}`)))
    const { contents } = await client.readResource(`note://${'%61'.repeat(8000)}`)
    expect(contents).toMatchObject([{ text: 'text' }])
    await client.close()
  })

  it.each(['resources/subscribe', 'resources/read'])(
    'are rejected by %s before they are compared',
    async (method) => {
      const client = await connect(memory(server('note://a')), { revision: '2025-11-25' })
      // Normalizing these ten takes seconds.
      const uri = `note://${'%é'.repeat(2_000_000)}`
      for (let i = 0; i < 10; i++)
        await expect(client.request(method, { uri })).rejects.toMatchObject({
          code: method === 'resources/read' ? -32002 : -32602,
        })
      await client.close()
    },
  )
})

import { expect, it, vi } from 'vitest'
import { connect, memory } from '../../src/client.js'
import { createServer, tool } from '../../src/index.js'
import { Cipher, maxEncryptedLength } from '../../src/server/cipher.js'

const CHARACTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

it('decrypts texts of any length and rejects a changed last character', async () => {
  const seal = new Cipher()
  for (let length = 0; length < 12; length++) {
    const text = 'x'.repeat(length)
    const sealed = await seal.encrypt(text, 'purpose')
    expect(await seal.decrypt(sealed, 'purpose', 100)).toBe(text)
    expect(await seal.decrypt(sealed, 'another', 100)).toBeUndefined()
    for (const character of CHARACTERS)
      if (character !== sealed.at(-1))
        expect(await seal.decrypt(sealed.slice(0, -1) + character, 'purpose', 100)).toBeUndefined()
  }
})

it.each(['', 'a', 'ab', 'abc', 'é', '€€€', '😀', 'x'.repeat(1000)])(
  'maxSealedLength bounds the encrypted length: %#',
  async (text) => {
    const seal = new Cipher()
    const sealed = await seal.encrypt(text, 'purpose')
    expect(sealed.length).toBeLessThanOrEqual(maxEncryptedLength(text.length))
    expect(await seal.decrypt(sealed, 'purpose', maxEncryptedLength(text.length))).toBe(text)
    expect(await seal.decrypt(sealed, 'purpose', sealed.length - 1)).toBeUndefined()
  },
)

it('rejects texts over the maximum length before decoding', async () => {
  const tools = ['a', 'b', 'c'].map((name) => tool({ name, run: () => name }))
  const server = createServer({
    name: 's',
    version: '1',
    pageSize: 1,
    tools,
    state: { keys: ['k'.repeat(32), 'l'.repeat(32)] },
  })
  await using client = await connect(memory(server), { revision: '2026-07-28' })
  const long = 'A'.repeat(4_000_000)
  const decode = vi.spyOn(globalThis, 'atob')
  try {
    await expect(client.request('tools/list', { cursor: long })).rejects.toThrow(
      'unknown cursor, or the list has changed',
    )
    await expect(client.request('tools/call', { name: 'a', requestState: long })).rejects.toThrow(
      'this requestState cannot be used: it has more than 65536 bytes. Send the request again without it',
    )
    expect(decode).not.toHaveBeenCalled()
    expect(
      await client.request('tools/list', {
        cursor: (await client.request('tools/list'))['nextCursor'],
      }),
    ).toMatchObject({
      tools: [{ name: 'b' }],
    })
    // The nonce and the text are decoded once, for any number of keys.
    expect(decode).toHaveBeenCalledTimes(2)
  } finally {
    decode.mockRestore()
  }
})

import { expect, it } from 'vitest'
import { Seal } from '../../src/server/seal.js'

const CHARACTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

it('a sealed text of any length is opened as it was, and not with any other last character', async () => {
  const seal = new Seal()
  for (let length = 0; length < 12; length++) {
    const text = 'x'.repeat(length)
    const sealed = await seal.close(text, 'purpose')
    expect(await seal.open(sealed, 'purpose')).toBe(text)
    expect(await seal.open(sealed, 'another')).toBeUndefined()
    for (const character of CHARACTERS)
      if (character !== sealed.at(-1)) expect(await seal.open(sealed.slice(0, -1) + character, 'purpose')).toBeUndefined()
  }
})

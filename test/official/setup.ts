import { afterEach, expect } from 'vitest'
import { violations } from './validate-channels.js'

afterEach(() => {
  expect(violations.splice(0)).toEqual([])
})

import { UsageError } from './options.js'

/** The value of `--port`. */
export function portOf(text: string): number {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535)
    throw new UsageError(`--port must be a number from 0 to 65535, not ${JSON.stringify(text)}`)
  return Number(text)
}

import { UsageError } from './options.js'

/** The value of an option such as `--port`. */
export function portOf(text: string, option = 'port'): number {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535)
    throw new UsageError(
      `--${option} must be a number from 0 to 65535, not ${JSON.stringify(text)}`,
    )
  return Number(text)
}

import { existsSync } from 'node:fs'
import { UsageError, suggestion } from './options.js'

/** The servers that come with ccmcp, and what each is. */
export const BUNDLED: Readonly<Record<string, string>> = {
  ccmcp: 'greeting, sums, files, tools made at run time (the default)',
  grammar: 'English verbs: forms, irregular ones, Spanish, agreement',
  text: 'echo and word count',
}
export const DEFAULT = 'ccmcp'

/** Whether a word means one of those, or a file. */
export function kindOf(word: string): 'bundled' | 'file' {
  if (Object.hasOwn(BUNDLED, word)) return 'bundled'
  if (/[\\/]|^\.|\.[cm]?[jt]sx?$/.test(word) || existsSync(word)) return 'file'
  const names = Object.keys(BUNDLED)
  const meant = suggestion(word, names)
  throw new UsageError(
    `There is no server ${JSON.stringify(word)}${meant === '' ? `; there are ${names.join(', ')}, or give a file such as ./server.js` : meant}`,
  )
}

import { existsSync, statSync } from 'node:fs'
import { UsageError, suggestion } from './options.js'

/** The servers that come with ccmcp, and what each is. */
export const BUNDLED: Readonly<Record<string, string>> = {
  ccmcp: 'greeting, sums, files, tools made at run time (the default)',
  grammar: 'English verbs: forms, irregular ones, Spanish, agreement',
  text: 'echo and word count',
}
export const DEFAULT_SERVER = 'ccmcp'

/** Whether a word means one of those, or a file; `also` says what else could be given. */
export function kindOf(word: string, also = ''): 'bundled' | 'file' {
  if (Object.hasOwn(BUNDLED, word)) return 'bundled'
  if (/[\\/]|^\.|\.[cm]?[jt]sx?$/.test(word) || existsSync(word)) return 'file'
  const names = Object.keys(BUNDLED)
  const meant = suggestion(word, names)
  throw new UsageError(
    `There is no server ${JSON.stringify(word)}${meant === '' ? `; there are ${names.join(', ')}, or give a file such as ./server.js${also}` : meant}`,
  )
}

/** Throws where a file that is to be served is none. */
export function checkFile(file: string): void {
  let isFile: boolean
  try {
    isFile = statSync(file).isFile()
  } catch (error) {
    throw new UsageError(
      `${file} cannot be served: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
  if (!isFile)
    throw new UsageError(`${file} is not a file; name the module that exports the server`)
}

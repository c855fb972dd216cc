import { existsSync, statSync } from 'node:fs'
import { UsageError, suggestion } from './options.js'

/** The bundled servers and their descriptions. */
export const BUNDLED: Readonly<Record<string, string>> = {
  ccmcp: 'hello, add, echo; files; tools registered at run time (default)',
  grammar: 'English verbs: conjugation, Spanish translation, agreement',
  text: 'echo and word count',
}
export const DEFAULT_SERVER = 'ccmcp'

/** Whether an argument names a bundled server or a file; `also` is added to the error message. */
export function serverKind(argument: string, also = ''): 'bundled' | 'file' {
  if (Object.hasOwn(BUNDLED, argument)) return 'bundled'
  if (/[\\/]|^\.|\.[cm]?[jt]sx?$/.test(argument) || existsSync(argument)) return 'file'
  const names = Object.keys(BUNDLED)
  const hint = suggestion(argument, names)
  throw new UsageError(
    `Unknown server ${JSON.stringify(argument)}${hint === '' ? `; expected ${names.join(', ')}, or a file such as ./server.js${also}` : hint}`,
  )
}

/** Throws if the module of a server is not a file. */
export function checkFile(file: string): void {
  let isFile: boolean
  try {
    isFile = statSync(file).isFile()
  } catch (error) {
    throw new UsageError(
      `Cannot load ${file}: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
  if (!isFile)
    throw new UsageError(`${file} is not a file; pass the module that exports the server`)
}

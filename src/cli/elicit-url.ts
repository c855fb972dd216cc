import type { ElicitResult } from '../client.js'
import { indented } from './format.js'
import { type Piece, styled } from './print.js'
import type { Questions } from './questions.js'
import { parseUrl } from '../runtime.js'

interface UrlRequest {
  server: string
  message: string
  url: unknown
  /** Whether to wait until the user is finished there. */
  waits: boolean
  /** Fires when the server says that the user is finished. */
  completed: AbortSignal | undefined
  /** Opens a URL in the browser; false if that fails. */
  open: (url: string) => Promise<boolean>
}

/** Shows a URL, and asks whether to open it. Nothing is opened, or fetched, before the user agrees. */
export async function answerUrl(
  { server, message, url: given, waits, completed, open }: UrlRequest,
  questions: Questions,
  signal: AbortSignal,
): Promise<ElicitResult> {
  const url = typeof given === 'string' ? parseUrl(given) : undefined
  questions.write(
    '\n',
    styled('heading', server),
    ` asks you to open a page in your browser:\n${indented(message, '  ')}\n\n`,
  )
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    questions.write(`  ${JSON.stringify(given)}\n`)
    questions.write(styled('warning', 'This is not the URL of a web page; declined.'), '\n')
    return { action: 'decline' }
  }
  questions.write('  ', ...shownUrl(url), '\n', ...warningsOf(url))
  for (;;) {
    const typed = await questions.ask(
      ['\nOpen it? (o)pen it in the browser, (y)es, I open it myself, (d)ecline, (c)ancel: '],
      signal,
    )
    const choice = typed?.trim().toLowerCase()
    if (choice === undefined || choice === 'c' || choice === 'cancel') return { action: 'cancel' }
    if (choice === 'd' || choice === 'decline' || choice === 'n' || choice === 'no')
      return { action: 'decline' }
    const opens = choice === 'o' || choice === 'open'
    if (opens && !(await open(url.href)))
      questions.write('The browser could not be started; open the URL yourself.\n')
    if (opens || choice === 'y' || choice === 'yes') break
    questions.write('Please type o, y, d or c.\n')
  }
  if (!waits || completed?.aborted === true) return { action: 'accept' }
  const finished = await waitUntilFinished(questions, signal, completed)
  return { action: finished ? 'accept' : 'cancel' }
}

/** Waits for the user, or for the server to say that the user is finished. False at the end of the input. */
async function waitUntilFinished(
  questions: Questions,
  signal: AbortSignal,
  completed: AbortSignal | undefined,
): Promise<boolean> {
  const either = completed === undefined ? signal : AbortSignal.any([signal, completed])
  try {
    const typed = await questions.ask(['Press Enter when you are finished there: '], either)
    return typed !== undefined
  } catch (error) {
    if (signal.aborted || completed?.aborted !== true) throw error
    questions.write('The server says that you are finished there.\n')
    return true
  }
}

/** The whole URL; its host stands out, in ASCII, so that look-alike letters are seen. */
function shownUrl(url: URL): Piece[] {
  const [before, after] = [`${url.protocol}//`, url.href.slice(url.origin.length)]
  const { username, password } = url
  if (username !== '' || password !== '') return [url.href]
  return [before, styled('heading', url.host), after]
}

function warningsOf({ protocol, hostname, host, username, password }: URL): Piece[] {
  const warnings: string[] = []
  if (username !== '' || password !== '')
    warnings.push(`The text before "@" is not the host; the host is ${host}.`)
  if (hostname.split('.').some((label) => label.startsWith('xn--')))
    warnings.push('The host has letters other than ASCII, which may look like others.')
  const isLocal = hostname === 'localhost' || hostname === '127.0.0.1' || hostname === '[::1]'
  if (protocol === 'http:' && !isLocal) warnings.push('The page is not encrypted (http:).')
  return warnings.flatMap((warning) => ['  ', styled('warning', warning), '\n'])
}

import type { ElicitResult } from '../client.js'
import { indented } from './format.js'
import { openBrowser } from './open-browser.js'
import { type Piece, styled } from './print.js'
import type { Questions } from './questions.js'

interface UrlRequest {
  server: string
  message: string
  url: unknown
  /** Whether to wait until the user is finished there. */
  waits: boolean
}

/** Shows a URL, and asks whether to open it. Nothing is opened, or fetched, before the user agrees. */
export async function answerUrl(
  { server, message, url: given, waits }: UrlRequest,
  questions: Questions,
  signal: AbortSignal,
): Promise<ElicitResult> {
  const url = typeof given === 'string' && URL.canParse(given) ? new URL(given) : undefined
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
    if (opens && !(await openBrowser(url.href)))
      questions.write('The browser could not be started; open the URL yourself.\n')
    if (opens || choice === 'y' || choice === 'yes') break
    questions.write('Please type o, y, d or c.\n')
  }
  if (waits) await questions.ask(['Press Enter when you are finished there: '], signal)
  return { action: 'accept' }
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

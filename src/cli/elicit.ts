import type { ElicitParams, ElicitResult } from '../client.js'
import { answerForm } from './elicit-form.js'
import { answerUrl } from './elicit-url.js'
import { truncate } from './format.js'
import { openBrowser } from './open-browser.js'
import { warn } from './print.js'
import { Questions, type TerminalStreams } from './questions.js'

/** Maximum characters to show of a server's message. */
const MAX_MESSAGE = 5000

export interface ElicitationContext {
  /** Who asks. */
  server: string
  /** Whether the user may be asked; otherwise everything is declined. */
  interactive: boolean
  /** Whether the request is sent again as soon as a URL is accepted, so that the user must be finished there. */
  waitsForUrl?: boolean
  /** Fires when the server says that the user is finished at a URL. */
  completed?: AbortSignal
  signal: AbortSignal
  streams?: TerminalStreams
  /** Opens a URL in the browser. */
  open?: (url: string) => Promise<boolean>
}

/** The user is asked one thing at a time. */
let previous: Promise<unknown> = Promise.resolve()

/** Asks the user what the server wants to know. Without a terminal, or with `--no-input`, the answer is to decline. */
export function answerElicitation(
  params: ElicitParams,
  context: ElicitationContext,
): Promise<ElicitResult> {
  const answered = previous.then(() => answer(params, context))
  previous = answered.catch(() => {})
  return answered
}

async function answer(params: ElicitParams, context: ElicitationContext): Promise<ElicitResult> {
  const { server, interactive, signal, completed } = context
  const streams = context.streams ?? { input: process.stdin, output: process.stderr }
  const message = truncate(params.message, MAX_MESSAGE)
  if (!interactive || streams.input.isTTY !== true || streams.output.isTTY !== true) {
    const what =
      params.mode === 'url' ? `to open ${truncate(String(params.url), 500)}` : 'for input'
    const advice = interactive ? 'in a terminal' : 'without --no-input'
    warn(
      `declined the request of ${server} ${what}: ${JSON.stringify(truncate(message, 500))}. Run ccmcp ${advice} to answer it`,
    )
    return { action: 'decline' }
  }
  signal.throwIfAborted()
  const questions = new Questions(streams)
  try {
    if (params.mode === 'form')
      return await answerForm(
        { server, message, schema: params.requestedSchema },
        questions,
        signal,
      )
    const { waitsForUrl: waits = false, open = openBrowser } = context
    const request = { server, message, url: params.url, waits, completed, open }
    return await answerUrl(request, questions, signal)
  } finally {
    questions.close()
  }
}

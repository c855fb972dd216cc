import type { Client, UrlElicitation } from '../client.js'
import { type ElicitationContext, answerElicitation } from './elicit.js'

/** Asks the user to open each URL, and waits until the user or the server says that this is completed. False if the user declines. */
export async function completeElicitations(
  elicitations: readonly UrlElicitation[],
  client: Client,
  context: ElicitationContext,
): Promise<boolean> {
  const completed = new Map(
    elicitations.map(({ elicitationId }) => [elicitationId, new AbortController()]),
  )
  const removeListener = client.on('notifications/elicitation/complete', ({ elicitationId }) =>
    completed.get(elicitationId)?.abort(),
  )
  try {
    for (const params of elicitations) {
      const signal = completed.get(params.elicitationId)?.signal
      const { action } = await answerElicitation(params, {
        ...context,
        waitsForUrl: true,
        ...(signal === undefined ? {} : { completed: signal }),
      })
      if (action !== 'accept') return false
    }
    return true
  } finally {
    removeListener()
  }
}

import { type Command, HELP } from './command.js'
import { abortOnSignal } from './signals.js'

export const demo: Command = {
  usage: 'demo [options]',
  description: 'Shows what ccmcp does, with real servers and clients, in half a minute.',
  options: {
    wire: { description: 'show every message of a session with the ccmcp server instead' },
    ...HELP,
  },
  positionals: [0, 0],
  async run({ values }) {
    const show = values.has('wire')
      ? (await import('./demo/wire.js')).showWire
      : (await import('./demo/story.js')).showStory
    await abortOnSignal((signal) => untilClosed(show, signal), { endsOnCtrlC: true })
  },
}

/** Nobody reads a closed pipe: the rest is not shown. */
async function untilClosed(
  show: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const closed = new AbortController()
  process.stdout.on('error', () => closed.abort())
  try {
    await show(AbortSignal.any([signal, closed.signal]))
  } catch (error) {
    if (!closed.signal.aborted) throw error
  }
}

import { type CaptureApi, CaptureService } from '../model/capture-service.js'
import type { Opened, ToPage, ToWorker } from './messages.js'
import { CaptureClient, DroppedCapture, ServedCapture } from './sources.js'

/** Runs in a worker: reads captures and answers the page. */

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has no origin to name
const post = (message: ToPage) => self.postMessage(message)

const { port1, port2 } = new MessageChannel()
const waiting: (() => void)[] = []
port1.addEventListener('message', () => waiting.shift()?.())
port1.start()
/** Resolves after the messages that have already arrived. Unlike a timer, it has no minimum delay. */
const pause = () =>
  new Promise<void>((resolve) => {
    waiting.push(resolve)
    port2.postMessage(undefined)
  })

const service = new CaptureService((state) => post({ type: 'state', state }), pause)

/** The number of captures opened so far: only the last one is shown. */
let opens = 0

async function open(opened: Opened): Promise<void> {
  const mine = ++opens
  if (opened.type === 'file') return await service.load(new DroppedCapture(opened.file))
  const client = new CaptureClient(opened.origin, opened.token)
  for (;;) {
    const capture = await ServedCapture.open(client)
    if (mine !== opens) return
    await service.load(capture)
    if (mine !== opens || !capture.isReplaced) return
  }
}

/** As the page calls them: `CaptureApi` has the types of both sides. */
type AnyMethod = (...args: readonly unknown[]) => unknown

async function answer(
  call: number,
  method: keyof CaptureApi,
  args: readonly unknown[],
): Promise<void> {
  try {
    const run = service[method].bind(service) as AnyMethod
    post({ type: 'result', call, result: await run(...args) })
  } catch (error) {
    post({ type: 'error', call, message: error instanceof Error ? error.message : String(error) })
  }
}

self.addEventListener('message', ({ data }: MessageEvent<ToWorker>) => {
  if (data.type === 'open') open(data.opened).catch((error: unknown) => service.fail(error))
  else void answer(data.call, data.method, data.args)
})

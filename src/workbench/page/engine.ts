import type { CaptureApi, CaptureState } from '../model/capture-service.js'
import type { Opened, ToPage, ToWorker } from './messages.js'

type Result<Method extends keyof CaptureApi> = Awaited<ReturnType<CaptureApi[Method]>>

interface Waiting {
  resolve(result: unknown): void
  reject(error: Error): void
}

interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL(url: string): string },
  ): { createScriptURL(url: string): string }
}

/** The worker that reads the capture. Its code is in the page, which works without a server too. */
export class Engine {
  readonly #worker: Worker
  readonly #waiting = new Map<number, Waiting>()
  #calls = 0

  constructor(onState: (state: CaptureState) => void) {
    this.#worker = new Worker(workerUrl(), { name: 'capture' })
    this.#worker.addEventListener('message', ({ data }: MessageEvent<ToPage>) => {
      if (data.type === 'state') return onState(data.state)
      const waiting = this.#waiting.get(data.call)
      this.#waiting.delete(data.call)
      if (data.type === 'result') waiting?.resolve(data.result)
      else waiting?.reject(new Error(data.message))
    })
  }

  open(opened: Opened): void {
    this.#post({ type: 'open', opened })
  }

  call<Method extends keyof CaptureApi>(
    method: Method,
    ...args: Parameters<CaptureApi[Method]>
  ): Promise<Result<Method>> {
    const call = ++this.#calls
    return new Promise((resolve, reject) => {
      this.#waiting.set(call, {
        resolve: (result) => resolve(result as Result<Method>), // the worker runs this method
        reject,
      })
      this.#post({ type: 'call', call, method, args })
    })
  }

  #post(message: ToWorker): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has no origin to name
    this.#worker.postMessage(message)
  }
}

/** The policy of the page forbids to make scripts from text, except this one. */
function workerUrl(): string {
  const source = document.getElementById('worker')?.textContent ?? ''
  const url = URL.createObjectURL(new Blob([source], { type: 'text/javascript' }))
  const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes } // not every browser has it
  const policy = trustedTypes?.createPolicy('worker', { createScriptURL: () => url })
  return policy?.createScriptURL(url) ?? url
}

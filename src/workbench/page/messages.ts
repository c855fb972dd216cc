import type { CaptureApi, CaptureState } from '../model/capture-service.js'

/** What to open: a file that was dropped, or the capture of the program that serves the page. */
export type Opened =
  | { type: 'file'; file: File }
  | { type: 'served'; origin: string; token: string }

/** From the page to the worker. */
export type ToWorker =
  | { type: 'open'; opened: Opened }
  | { type: 'call'; call: number; method: keyof CaptureApi; args: readonly unknown[] }

/** From the worker to the page. */
export type ToPage =
  | { type: 'state'; state: CaptureState }
  | { type: 'result'; call: number; result: unknown }
  | { type: 'error'; call: number; message: string }

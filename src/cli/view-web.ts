import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { captureFolder, newestCapture } from '../tap/captures.js'
import { PageServer } from '../workbench/server/page-server.js'
import { ServedCapture } from '../workbench/server/served-capture.js'
import { CaptureSource } from './capture-source.js'
import { openBrowser } from './open-browser.js'
import { print, warn } from './print.js'
import { abortOnSignal } from './signals.js'

/** Serves the page until the program is ended. `isNewest`: with --follow, each newer capture is shown. */
export async function viewWeb(
  values: ReadonlyMap<string, string>,
  path: string | undefined,
  isNewest: boolean,
): Promise<void> {
  const follow = values.has('follow')
  if (path !== undefined) checkCapture(path, follow)
  const newest = follow && isNewest ? () => newestCapture(captureFolder()) : undefined
  const html = readFileSync(new URL('./workbench.html', import.meta.url), 'utf8')
  const server = new PageServer({ html, capture: new ServedCapture(path, newest), follow })
  const filter = values.get('filter') ?? ''
  await abortOnSignal(
    async (signal) => {
      try {
        const page = await server.listen()
        const url = filter === '' ? page : `${page}&${new URLSearchParams({ filter }).toString()}`
        print(`${url}\n`)
        if (values.has('open')) await openPage(url, signal)
        if (!signal.aborted)
          await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
      } finally {
        await server.close()
      }
    },
    { endsOnCtrlC: true },
  )
}

/** Fails if the file cannot be read, or is not a capture. One that is followed may have no record yet. */
function checkCapture(path: string, follow: boolean): void {
  const source = new CaptureSource(path)
  const records = source.records()
  const { value: first } = records.next()
  records.return(undefined)
  if (first === undefined && !follow) source.end()
}

/** Other users see the arguments of a program. The token is therefore in a file that only its owner can read. */
async function openPage(url: string, signal: AbortSignal): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'ccmcp-view-'))
  const remove = () => rmSync(folder, { recursive: true, force: true })
  signal.addEventListener('abort', remove, { once: true })
  const file = join(folder, 'open.html')
  const target = url.replaceAll('&', '&amp;')
  const html = `<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=${target}">`
  writeFileSync(file, html, { mode: 0o600 })
  if (await openBrowser(pathToFileURL(file).href)) return
  remove()
  warn('the browser could not be started; open the URL above')
}

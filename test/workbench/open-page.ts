import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { PageServer } from '../../src/workbench/server/page-server.js'
import { ServedCapture } from '../../src/workbench/server/served-capture.js'
import { launchBrowser } from '../browser.js'

export const HTML_PATH = new URL('../../dist/workbench.html', import.meta.url)
export const html = (): string => readFileSync(HTML_PATH, 'utf8')

/** What a test has opened, and what went wrong in its pages. */
export class Workplace {
  readonly folder = mkdtempSync(join(tmpdir(), 'ccmcp-page-'))
  /** Errors on the console, exceptions and violations of the policy. */
  readonly problems: string[] = []
  readonly #closing: (() => Promise<unknown>)[] = []
  #browser: Browser | undefined

  file(name: string, content: string): string {
    const path = join(this.folder, name)
    writeFileSync(path, content)
    return path
  }

  /** Serves a capture; resolves to the URL of the page. */
  async serve(
    path: string | undefined,
    newest?: () => string | undefined,
    follow = newest !== undefined,
  ) {
    const capture = new ServedCapture(path, newest)
    const server = new PageServer({ html: html(), capture, follow })
    this.#closing.push(() => server.close())
    return { server, url: await server.listen() }
  }

  /** Opens an address in a page of its own. */
  async open(url: string, options: BrowserContextOptions = {}): Promise<Page> {
    this.#browser ??= await launchBrowser()
    const context = await this.#browser.newContext({
      viewport: { width: 1440, height: 900 },
      timezoneId: 'UTC',
      ...options,
    })
    // As that of `expect.poll`.
    context.setDefaultTimeout(60_000)
    const page = await context.newPage()
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning')
        this.problems.push(message.text())
    })
    page.on('pageerror', (error) => this.problems.push(error.message))
    await page.goto(url)
    return page
  }

  /** Shows a capture; resolves when all of it is read. */
  async show(content: string, fragment = '', options: BrowserContextOptions = {}): Promise<Page> {
    const { url } = await this.serve(this.file('capture.ndjson', content))
    const page = await this.open(`${url}${fragment}`, options)
    await read(page)
    return page
  }

  async closePages(): Promise<void> {
    for (const context of this.#browser?.contexts() ?? []) await context.close()
    for (const close of this.#closing.splice(0)) await close()
  }

  async close(): Promise<void> {
    await this.closePages()
    await this.#browser?.close()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** Resolves when the capture is read and its first rows are shown: until then they are empty. */
export async function read(page: Page): Promise<void> {
  await page.locator('#rows .scroller [role=row]:not([aria-busy])').first().waitFor()
  await page.locator('progress').waitFor({ state: 'detached' })
}

/** The texts of the cells of a class that are in the document, from top to bottom. */
export async function cells(page: Page, name: string): Promise<string[]> {
  return await page.locator(`#rows .scroller .${name}`).allTextContents()
}

/** The bytes that are marked, as ASCII. */
export async function markedBytes(page: Page): Promise<string> {
  return (await page.locator('#bytes .ascii .byte.on').allTextContents()).join('')
}

import { fileURLToPath } from 'node:url'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { app, apps, clientApps } from '../../src/apps.js'
import { type Client, connect, memory, stdio } from '../../src/client.js'
import { createServer, tool } from '../../src/index.js'
import { revisions } from '../../src/protocol/revisions/index.js'
import { chromiumPath, launchBrowser } from '../browser.js'
import { AppHost } from './app-host.js'

const example = fileURLToPath(new URL('../../examples/apps/server.mjs', import.meta.url))

describe.skipIf(chromiumPath === undefined)('an app in a browser', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(async () => {
    await browser.close()
  })

  async function inHost(client: Client, run: (host: AppHost) => Promise<void>): Promise<void> {
    const host = await AppHost.show(browser, client, 'expenses', { categories: ['rent', 'food'] })
    try {
      await run(host)
    } finally {
      await host.page.close()
      await client.close()
    }
  }

  // Where results have no structured content, the page shows the text.
  it.each(
    revisions.map(({ id, structuredContent }) => [id, structuredContent !== 'none'] as const),
  )(
    'examples/apps shows the result, and calls a tool through the host, in %s',
    async (revision, structured) => {
      const client = await connect(stdio(process.execPath, [example]), {
        revision,
        extensions: [clientApps()],
      })
      await inHost(client, async ({ app: frame, received, problems }) => {
        if (!structured) {
          await frame.getByText('rent: 900').waitFor()
          return
        }
        await frame.getByText('2 categories').waitFor()
        expect(await frame.locator('dl').innerText()).toMatch(/rent\s+900\s+food\s+310/)
        expect(received.slice(0, 2).map(({ method }) => method)).toEqual([
          'ui/initialize',
          'ui/notifications/initialized',
        ])
        // What the host says of its theme is applied.
        expect(await frame.evaluate('getComputedStyle(document.documentElement).colorScheme')).toBe(
          'dark',
        )
        // It is apart from the host: the origin is opaque.
        expect(await frame.evaluate('window.origin')).toBe('null')

        await frame.getByLabel('Category').fill('<b>books</b>')
        await frame.getByLabel('Amount').fill('25')
        await frame.getByRole('button', { name: 'Add' }).click()
        await frame.getByText('4 categories').waitFor()
        expect(await frame.locator('dt').allInnerTexts()).toContain('<b>books</b>')
        expect(received.find(({ method }) => method === 'tools/call')?.params).toEqual({
          name: 'add_expense',
          arguments: { category: '<b>books</b>', amount: 25 },
        })
        await expect
          .poll(() => received.map(({ method }) => method))
          .toContain('ui/notifications/size-changed')
        expect(problems).toEqual([])
      })
    },
  )

  it('examples/apps shows an error of the tool, and answers requests of the host', async () => {
    const client = await connect(stdio(process.execPath, [example]), { extensions: [clientApps()] })
    await inHost(client, async (host) => {
      await host.app.getByText('2 categories').waitFor()
      await host.app.getByLabel('Category').fill('x')
      await host.app.getByRole('button', { name: 'Add' }).click()
      // The amount is missing: the form is not sent.
      expect(host.received.some(({ method }) => method === 'tools/call')).toBe(false)
      const params = { content: [{ type: 'text', text: 'No bank today' }], isError: true }
      await host.send({ method: 'ui/notifications/tool-result', params })
      await host.app.getByText('No bank today').waitFor()
      await host.send({ id: 7, method: 'ui/resource-teardown', params: { reason: 'closed' } })
      await host.send({ id: 8, method: 'ui/unknown', params: {} })
      await expect
        .poll(() => host.received.filter(({ id }) => id === 7 || id === 8))
        .toEqual([
          { jsonrpc: '2.0', id: 7, result: {} },
          {
            jsonrpc: '2.0',
            id: 8,
            error: { code: -32601, message: 'Method not found: ui/unknown' },
          },
        ])
    })
  })

  it('the origins of csp become a policy that the browser enforces', async () => {
    const page = `<!doctype html><head></head><script>
      const tried = (url) => fetch(url).catch(() => {})
      addEventListener('securitypolicyviolation', ({ blockedURI }) => (document.title += blockedURI))
      tried('https://api.example.com/a').then(() => tried('https://evil.example/b'))</script>`
    const csp = { connectDomains: ['https://api.example.com'] }
    const server = createServer({
      name: 'x',
      version: '1',
      tools: [
        tool({
          name: 'expenses',
          app: app({ name: 'p', html: page, csp }),
          input: { type: 'object' },
          run: () => 'x',
        }),
      ],
      extensions: [apps()],
    })
    await inHost(await connect(memory(server), { extensions: [clientApps()] }), async (host) => {
      await expect.poll(() => host.app.title()).toContain('https://evil.example/b')
      expect(await host.app.title()).not.toContain('api.example.com')
    })
  })
})

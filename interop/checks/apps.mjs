// The official host library (AppBridge) shows the page of examples/apps in Chromium; the official client talks to its server.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import {
  getToolUiResourceUri,
  isToolVisibilityAppOnly,
} from '@modelcontextprotocol/ext-apps/app-bridge'
import { RESOURCE_MIME_TYPE } from '@modelcontextprotocol/ext-apps/server'
import { build } from 'esbuild'
import { chromium } from 'playwright-core'
import { Skipped, script } from '../harness.mjs'

const UI = 'io.modelcontextprotocol/ui'

export function appChecks(versions) {
  return [[`apps ext-apps ${versions['@modelcontextprotocol/ext-apps']} app-bridge`, appBridge]]
}

function browserPath() {
  const folders = (process.env.PATH ?? '').split(delimiter)
  const found = folders.map((folder) => join(folder, 'chromium')).find((path) => existsSync(path))
  const path = process.env.CHROMIUM ?? found
  if (path === undefined) throw new Skipped('requires Chromium; CHROMIUM may name it')
  return path
}

/** A page with the official host library; `callTool` is a function of this process. */
async function hostPage() {
  const contents = `
    import { AppBridge, PostMessageTransport } from '@modelcontextprotocol/ext-apps/app-bridge'
    globalThis.show = async (html, args, result) => {
      const frame = document.createElement('iframe')
      frame.setAttribute('sandbox', 'allow-scripts')
      document.body.append(frame)
      const bridge = new AppBridge(null, { name: 'host', version: '1' }, { serverTools: {} }, { hostContext: { theme: 'dark' } })
      bridge.oncalltool = (params) => callTool(params)
      const initialized = new Promise((resolve) => bridge.addEventListener('initialized', resolve))
      const sized = new Promise((resolve) => bridge.addEventListener('sizechange', resolve))
      await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow))
      frame.srcdoc = html
      await initialized
      await bridge.sendToolInput({ arguments: args })
      await bridge.sendToolResult(result)
      globalThis.teardown = () => bridge.teardownResource({})
      return { app: bridge.getAppVersion(), size: await sized }
    }`
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: fileURLToPath(new URL('..', import.meta.url)) },
    bundle: true,
    format: 'iife',
    platform: 'browser',
    write: false,
    logLevel: 'error',
  })
  return `<!doctype html><title>Host</title><body><script>${outputFiles[0].text.replaceAll('</script', '<\\/script')}</script>`
}

async function appBridge(t) {
  const browser = await chromium.launch({
    executablePath: browserPath(),
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  })
  t.defer(() => browser.close())
  const client = new Client(
    { name: 'host', version: '1.0.0' },
    {
      versionNegotiation: { mode: 'auto' },
      capabilities: { extensions: { [UI]: { mimeTypes: [RESOURCE_MIME_TYPE] } } },
    },
  )
  t.defer(() => client.close())
  const args = { categories: ['rent', 'food'] }
  const { html, result } = await t.must('tools and page', async () => {
    const server = script('../examples/apps/server.mjs')
    await client.connect(
      new StdioClientTransport({ command: process.execPath, args: server, env: t.env }),
    )
    const { tools } = await client.listTools()
    assert.deepEqual(
      tools.map((tool) => [tool.name, isToolVisibilityAppOnly(tool)]),
      [
        ['expenses', false],
        ['add_expense', true],
      ],
    )
    const { contents } = await client.readResource({ uri: getToolUiResourceUri(tools[0]) })
    assert.equal(contents[0].mimeType, RESOURCE_MIME_TYPE)
    return {
      html: contents[0].text,
      result: await client.callTool({ name: 'expenses', arguments: args }),
    }
  })
  const page = await browser.newPage()
  await page.exposeFunction('callTool', (params) => client.callTool(params))
  const body = await hostPage()
  await page.route('**/*', (route) => route.fulfill({ contentType: 'text/html', body }))
  await page.goto('http://host.example/')
  const app = await t.must('initialize', async () => {
    const shown = await page.evaluate(
      `show(${JSON.stringify(html)}, ${JSON.stringify(args)}, ${JSON.stringify(result)})`,
    )
    assert.equal(shown.app.name, 'chart')
    assert.ok(shown.size.height > 0)
    return page.frames()[1]
  })
  await t.step('tool result', () => app.getByText('2 categories').waitFor())
  await t.step('call of the app', async () => {
    await app.getByLabel('Category').fill('books')
    await app.getByLabel('Amount').fill('25')
    await app.getByRole('button', { name: 'Add' }).click()
    await app.getByText('4 categories').waitFor()
  })
  await t.step('teardown', () => page.evaluate('teardown()'))
}

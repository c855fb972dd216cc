import { readFileSync } from 'node:fs'
import type { Browser, Frame, Page } from 'playwright-core'
import type { Client } from '../../src/client.js'

/* A minimal host of apps: a page that shows an app in a sandboxed frame, and forwards its calls to a client of ours. */

const hostPage = readFileSync(new URL('app-host.html', import.meta.url), 'utf8')

interface Message {
  jsonrpc: '2.0'
  id?: number
  method?: string
  params?: Record<string, unknown>
  result?: unknown
  error?: { code: number; message: string }
}

interface ToolUi {
  resourceUri?: string
  visibility?: string[]
}

/** The policy that a host must apply, by what the page declares. */
export function policyOf(csp: Readonly<Record<string, string[]>> = {}): string {
  const list = (name: string, otherwise = '') => csp[name]?.join(' ') ?? otherwise
  const resources = list('resourceDomains')
  return [
    "default-src 'none'",
    `script-src 'self' 'unsafe-inline' ${resources}`,
    `style-src 'self' 'unsafe-inline' ${resources}`,
    `img-src 'self' data: ${resources}`,
    `connect-src ${list('connectDomains', "'none'")}`,
    `frame-src ${list('frameDomains', "'none'")}`,
    "object-src 'none'",
  ].join('; ')
}

export class AppHost {
  readonly page: Page
  /** What the app has sent. */
  readonly received: Message[] = []
  /** Errors and refused requests of the page, which the browser logs. */
  readonly problems: string[] = []
  readonly #client: Client
  readonly #visibility = new Map<string, string[]>()

  private constructor(page: Page, client: Client) {
    this.page = page
    this.#client = client
  }

  /** Calls a tool and shows its app, as a host does when the model has called it. */
  static async show(
    browser: Browser,
    client: Client,
    tool: string,
    args: Record<string, unknown>,
  ): Promise<AppHost> {
    const host = new AppHost(await browser.newPage(), client)
    const { tools } = await client.request('tools/list')
    let uri = ''
    for (const { name, _meta } of tools) {
      const { resourceUri, visibility = ['model', 'app'] } = (_meta?.['ui'] ?? {}) as ToolUi // by the specification
      host.#visibility.set(name, visibility)
      if (name === tool) uri = resourceUri ?? ''
    }
    const { contents } = await client.request('resources/read', { uri })
    const { text = '', mimeType, _meta } = contents[0] ?? {}
    if (mimeType !== 'text/html;profile=mcp-app') throw new Error(`${uri} is ${mimeType}`)
    const { csp } = (_meta?.['ui'] ?? {}) as { csp?: Record<string, string[]> } // by the specification
    await host.#open(text, policyOf(csp), args, await client.callTool(tool, args))
    return host
  }

  async #open(html: string, policy: string, args: object, result: object): Promise<void> {
    const { page } = this
    page.on('console', (message) => {
      if (message.type() === 'error') this.problems.push(message.text())
    })
    page.on('pageerror', (error) => this.problems.push(error.message))
    await page.route('**/*', (route) =>
      route.request().url() === 'http://host.example/'
        ? route.fulfill({ contentType: 'text/html', body: hostPage })
        : route.abort(),
    )
    await page.exposeFunction('fromApp', (message: Message) => this.#serve(message, args, result))
    await page.goto('http://host.example/')
    await page.evaluate(`show(${JSON.stringify({ html, policy })})`)
  }

  /** The document of the app. */
  get app(): Frame {
    const [, frame] = this.page.frames()
    if (frame === undefined) throw new Error('There is no frame')
    return frame
  }

  /** Sends a message to the app. */
  async send(message: object): Promise<void> {
    await this.page.evaluate(`toApp(${JSON.stringify({ jsonrpc: '2.0', ...message })})`)
  }

  /** The messages to be sent after one from the app. */
  async #serve(message: Message, args: object, result: object): Promise<object[]> {
    this.received.push(message)
    const { id, method, params = {} } = message
    const reply = (rest: object) => (id === undefined ? [] : [{ jsonrpc: '2.0', id, ...rest }])
    switch (method) {
      case 'ui/initialize':
        return reply({
          result: {
            protocolVersion: '2026-01-26',
            hostInfo: { name: 'host', version: '1' },
            hostCapabilities: { serverTools: {} },
            hostContext: { theme: 'dark', styles: { variables: { '--font-sans': 'monospace' } } },
          },
        })
      case 'ui/notifications/initialized':
        return [
          { method: 'ui/notifications/tool-input', params: { arguments: args } },
          { method: 'ui/notifications/tool-result', params: result },
        ].map((notification) => ({ jsonrpc: '2.0', ...notification }))
      case 'tools/call':
        return reply(await this.#call(String(params['name']), params['arguments']))
      default:
        return reply({ error: { code: -32601, message: `Method not found: ${method}` } })
    }
  }

  /** Forwards a call of the app, if the tool is for apps. */
  async #call(name: string, args: unknown): Promise<object> {
    if (this.#visibility.get(name)?.includes('app') !== true)
      return { error: { code: -32602, message: `${name} is not for apps` } }
    try {
      return { result: await this.#client.callTool(name, args as Record<string, unknown>) } // checked by the server
    } catch (error) {
      return { error: { code: -32603, message: String(error) } }
    }
  }
}

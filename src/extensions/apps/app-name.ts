import { isObject } from '../../jsonrpc/message.js'
import type { Caller } from '../../server/call.js'

/** https://github.com/modelcontextprotocol/ext-apps/blob/main/specification/2026-01-26/apps.mdx */
export const UI = 'io.modelcontextprotocol/ui'

/** The MIME type of pages. */
export const APP_MIME_TYPE = 'text/html;profile=mcp-app'

/** Whether a client has declared that it shows apps: its MIME types must include ours. */
export function supportsApps({ capabilities }: Pick<Caller, 'capabilities'>): boolean {
  const settings = declared(capabilities)
  const types = isObject(settings) ? settings['mimeTypes'] : undefined
  return (
    Array.isArray(types) &&
    types.some((type) => typeof type === 'string' && canonical(type) === APP_MIME_TYPE)
  )
}

/** What a client has declared for apps. */
export function declared(capabilities: Caller['capabilities']): unknown {
  const { extensions } = capabilities
  return isObject(extensions) ? extensions[UI] : undefined
}

/** MIME types are case-insensitive, and parameters may be spaced and quoted. */
function canonical(type: string): string {
  return type.slice(0, 100).replaceAll(/[\s"]/g, '').toLowerCase()
}

import { isObject } from '../../jsonrpc/message.js'
import { EXTENSION_META } from '../../protocol/meta.js'
import type { CallToolResult } from '../../protocol/model.js'
import { checkNames, namesOf } from '../../schema/names.js'
import type { Caller } from '../../server/call.js'
import type { Resource, Tool } from '../../server/define.js'
import { type Extension, extension } from '../../server/extensions.js'
import { type App, type AppVisibility, visibilityProblem } from './app.js'
import { APP_MIME_TYPE, UI, declared, supportsApps } from './app-name.js'
import { unknownName } from './csp.js'

export interface AppsOptions {
  /** Treats clients that declare nothing for apps as clients that show them (default false): some hosts do, and fail to declare it. */
  assumeSupport?: boolean
}

/** How a tool uses apps. */
export interface ToolApp {
  /** The page that shows its results, made with `app(…)`. */
  page?: App
  /** Who may call it: `['app']` is a tool for pages only, which the model does not see (default: that of the page, or both). */
  visibility?: readonly AppVisibility[]
}

declare module '../../server/define.js' {
  interface ToolFields {
    /** The page that shows its results, made with `app(…)`, or an object with a `page` and a `visibility`. Needs the extension `apps()`. */
    app?: App | ToolApp
  }
}

const OPTIONS = namesOf<AppsOptions>()('assumeSupport')
const MEMBERS = namesOf<ToolApp>()('page visibility')

/** The extension for apps: tools with an `app` have a page that hosts show. */
export function apps(options: AppsOptions = {}): Extension {
  checkNames('apps', options, OPTIONS)
  const { assumeSupport = false } = options
  if (typeof assumeSupport !== 'boolean')
    throw new TypeError('apps: "assumeSupport" must be true or false')
  const showsApps = (caller: Caller) =>
    supportsApps(caller) || (assumeSupport && declared(caller.capabilities) === undefined)
  const resources = new WeakMap<App, Resource>()
  return extension({
    id: UI,
    toolFields: { app: checkToolApp },
    toolResources(tool) {
      for (const key of ['ui', 'ui/resourceUri'])
        if (tool.meta !== undefined && key in tool.meta)
          throw new TypeError(`Tool "${tool.name}": "meta.${key}" is set by "app"; remove it`)
      const page = toolAppOf(tool)?.page
      if (page === undefined) return []
      const resource = resources.get(page) ?? resourceOf(page, showsApps)
      resources.set(page, resource)
      return [resource]
    },
    listTool(listing, tool, { caller }) {
      const app = toolAppOf(tool)
      if (app === undefined) return listing
      const { page, visibility } = app
      if (showsApps(caller)) {
        const ui = {
          ...(page === undefined ? {} : { resourceUri: page.uri }),
          ...(visibility === undefined ? {} : { visibility }),
        }
        return { ...listing, [EXTENSION_META]: { ui } }
      }
      return visibility?.includes('model') === false ? undefined : listing
    },
    callTool({ tool }, run) {
      const page = toolAppOf(tool)?.page
      if (page === undefined) return run()
      const result = run()
      return result instanceof Promise
        ? result.then((value) => withFallback(value, page))
        : withFallback(result, page)
    },
  })
}

/** What is wrong with the `app` of a tool. */
function checkToolApp(value: unknown): string | undefined {
  if (value === undefined || isApp(value)) return undefined
  if (!isObject(value))
    return 'must be made with app({ … }), or be an object with a "page" and a "visibility"'
  const names = MEMBERS.split(' ')
  const unknown = Object.keys(value).find((name) => !names.includes(name))
  if (unknown !== undefined) return `has ${unknownName(unknown, names)}`
  const { page, visibility } = value
  if (page !== undefined && !isApp(page)) return 'has a "page" that was not made with app({ … })'
  if (visibility === undefined) return undefined
  const problem = visibilityProblem(visibility)
  return problem === undefined ? undefined : `has a "visibility" that ${problem}`
}

function isApp(value: unknown): value is App {
  return isObject(value) && value['extension'] === UI && typeof value['html'] === 'function'
}

/** How a tool uses apps; undefined if it does not. */
function toolAppOf({ app }: Tool): ToolApp | undefined {
  if (app === undefined) return undefined
  const { page, visibility = page?.options.visibility } = isApp(app) ? { page: app } : app
  return {
    ...(page === undefined ? {} : { page }),
    ...(visibility === undefined ? {} : { visibility }),
  }
}

/** The page as a resource, for clients that show apps. */
function resourceOf(page: App, showsApps: (caller: Caller) => boolean): Resource {
  const { title, description, icons, cache, scopes, visible } = page.options
  const ui = uiOf(page)
  const shown = { title, description, icons, cache, scopes }
  return {
    uri: page.uri,
    name: page.name,
    mimeType: APP_MIME_TYPE,
    ...Object.fromEntries(Object.entries(shown).filter(([, value]) => value !== undefined)),
    visible: (caller) => showsApps(caller) && (visible?.(caller) ?? true),
    // On the contents, where hosts must look, and for a review on the listing.
    meta: { ui },
    read: () => ({ text: page.html(), [EXTENSION_META]: { ui } }),
  }
}

/** What hosts must know of a page before they show it. */
function uiOf({ options: { csp, permissions, domain, prefersBorder } }: App): object {
  return {
    ...(csp === undefined ? {} : { csp }),
    ...(permissions === undefined
      ? {}
      : { permissions: Object.fromEntries(permissions.map((name) => [name, {}])) }),
    ...(domain === undefined ? {} : { domain }),
    ...(prefersBorder === undefined ? {} : { prefersBorder }),
  }
}

/** A result with content: tools must return it also if the page shows everything. */
function withFallback(result: CallToolResult, { name, options }: App): CallToolResult {
  const { content, structuredContent } = result
  if (!Array.isArray(content) || content.length > 0) return result
  const { title = name, fallback = `The result is shown in ${title}.` } = options
  const text =
    options.fallback === undefined && structuredContent !== undefined
      ? JSON.stringify(structuredContent)
      : fallback
  return { ...result, content: [{ type: 'text', text }] }
}

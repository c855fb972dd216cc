import { withCode } from '../../jsonrpc/errors.js'
import { isObject } from '../../jsonrpc/message.js'
import { truncateJson } from '../../jsonrpc/truncate.js'
import type { CacheHint, Icon } from '../../protocol/model.js'
import { checkNames, namesOf } from '../../schema/names.js'
import type { Caller } from '../../server/call.js'
import { UI } from './app-name.js'
import { type AppCsp, type AppPermission, cspProblem, permissionsProblem } from './csp.js'
import { PageFile } from './page-file.js'

/** Who may call a tool: the model, the page, or both. */
export type AppVisibility = 'model' | 'app'

export interface AppOptions {
  /** 1 to 128 letters, digits, `_`, `-` and `.`; unique among the apps of a server. */
  name: string
  /** The display name; default is the name. */
  title?: string
  /** What it is for. */
  description?: string
  /** Icons, each with a `src`. */
  icons?: Icon[]
  /** The URI of the page (default: `ui://apps/` and the name). */
  uri?: string
  /** The page, a complete HTML document. */
  html?: string
  /** A file with the page, instead of `html`: a path or a `file:` URL. It is read again when it has changed. */
  file?: string | URL
  /** Maximum size of the page in bytes (default 4 MiB). */
  maxBytes?: number
  /** The origins that the page may use (default: none). */
  csp?: AppCsp
  /** What the page would like to use: `camera`, `microphone`, `geolocation`, `clipboardWrite`. */
  permissions?: readonly AppPermission[]
  /** The domain of the page's own origin. Its format depends on the host. */
  domain?: string
  /** Whether the host should draw a border and a background (default: the host decides). */
  prefersBorder?: boolean
  /** Who may call its tools, unless a tool says otherwise (default: `['model', 'app']`). */
  visibility?: readonly AppVisibility[]
  /** The text of a result that has no content of its own: hosts without apps, and models, have nothing else. */
  fallback?: string
  /** Caching hints of the page (default: not cacheable). */
  cache?: Partial<CacheHint>
  /** Whether a caller may read the page, or a promise of that. */
  visible?: (caller: Caller) => boolean | Promise<boolean>
  /** The OAuth scopes that a remote caller's token must grant. */
  scopes?: readonly string[]
}

/** A page that shows results of tools, as `app(…)` makes it. */
export interface App {
  readonly name: string
  readonly uri: string
  readonly options: Readonly<AppOptions>
  /** The id of the extension that a server needs for it. */
  readonly extension: typeof UI
  /** The HTML of the page, as it is now. */
  html(): string
}

const OPTIONS = namesOf<AppOptions>()(
  'name title description icons uri html file maxBytes csp permissions domain prefersBorder visibility fallback cache visible scopes',
)
const MAX_BYTES = 4 * 1024 * 1024

/** Makes a page for the `app` of tools. Throws if it is not valid, with the code INVALID_APP. */
export function app(options: AppOptions): App {
  if (!isObject(options)) throw invalid(undefined, 'pass an object with a "name" and a page')
  const { name, html, file, maxBytes = MAX_BYTES, uri = `ui://apps/${name}` } = options
  checkNames(`app ${truncateJson(name)}`, options, OPTIONS)
  // The name is part of a URI.
  if (typeof name !== 'string' || !/^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}$/.test(name))
    throw invalid(
      name,
      '"name" must be 1 to 128 of the characters A-Z a-z 0-9 _ - . and not begin with a dot',
    )
  if (typeof uri !== 'string' || !/^ui:\/\/[^\s/{}][^\s{}]*$/.test(uri))
    throw invalid(
      name,
      `"uri" must begin with ui:// and have no variables, such as "ui://apps/${name}"`,
    )
  if (!(Number.isSafeInteger(maxBytes) && maxBytes > 0))
    throw invalid(name, '"maxBytes" must be a number of bytes greater than 0')
  if ((html === undefined) === (file === undefined))
    throw invalid(name, 'it needs a page: pass either "html" or "file", not both')
  for (const [member, problem] of problemsOf(options))
    if (problem !== undefined) throw invalid(name, `"${member}" ${problem}`)
  const read = file === undefined ? pageIn(name, html, maxBytes) : pageAt(name, file, maxBytes)
  read()
  return { name, uri, options: { ...options }, extension: UI, html: read }
}

function problemsOf(options: AppOptions): [member: string, problem: string | undefined][] {
  const { csp, permissions, domain, prefersBorder, visibility, fallback } = options
  const wrong = (holds: boolean, expected: string) => (holds ? undefined : `must be ${expected}`)
  const given: [string, unknown, () => string | undefined][] = [
    ['csp', csp, () => cspProblem(csp)],
    ['permissions', permissions, () => permissionsProblem(permissions)],
    ['visibility', visibility, () => visibilityProblem(visibility)],
    [
      'domain',
      domain,
      () =>
        wrong(
          typeof domain === 'string' && /^[A-Za-z0-9.-]{1,253}$/.test(domain),
          'a domain name without a scheme, such as "view.example.com"',
        ),
    ],
    [
      'prefersBorder',
      prefersBorder,
      () => wrong(typeof prefersBorder === 'boolean', 'true or false'),
    ],
    [
      'fallback',
      fallback,
      () => wrong(typeof fallback === 'string' && fallback !== '', 'a text for the model'),
    ],
  ]
  return given.flatMap(([member, value, check]) => (value === undefined ? [] : [[member, check()]]))
}

/** What is wrong with a `visibility`. */
export function visibilityProblem(visibility: unknown): string | undefined {
  const known: ReadonlySet<unknown> = new Set(['model', 'app'])
  return Array.isArray(visibility) &&
    visibility.length > 0 &&
    visibility.every((each) => known.has(each)) &&
    new Set(visibility).size === visibility.length
    ? undefined
    : 'must be ["model"], ["app"] or ["model", "app"]'
}

function pageIn(name: string, html: unknown, maxBytes: number): () => string {
  if (typeof html !== 'string') throw invalid(name, '"html" must be a string')
  // A character has at least one byte.
  if (html.length > maxBytes || new TextEncoder().encode(html).length > maxBytes)
    throw invalid(
      name,
      `"html" has more than ${maxBytes} bytes; make it smaller or raise "maxBytes"`,
    )
  checkDocument(html, (problem) => invalid(name, `"html" ${problem}`))
  return () => html
}

function pageAt(name: string, file: unknown, maxBytes: number): () => string {
  if (!(file instanceof URL) && (typeof file !== 'string' || file === ''))
    throw invalid(name, '"file" must be a path or a file: URL')
  if (file instanceof URL && file.protocol !== 'file:')
    throw invalid(name, `"file" must be a file: URL, not ${file.protocol}`)
  const failed = (error: unknown) =>
    invalid(
      name,
      `its file ${truncateJson(String(file))} cannot be used: ${error instanceof Error ? error.message : String(error)}`,
    )
  let page: PageFile
  try {
    page = new PageFile(file, maxBytes)
  } catch (error) {
    throw failed(error)
  }
  return () => {
    try {
      const text = page.read()
      checkDocument(text, (problem) => new Error(`it ${problem}`))
      return text
    } catch (error) {
      throw failed(error)
    }
  }
}

/** Throws unless a text begins as an HTML document does: with a doctype, after comments and white space. */
function checkDocument(html: string, fail: (problem: string) => Error): void {
  const start = html.slice(0, 10_000).replace(/^\uFEFF?(?:\s+|<!--[^]*?-->)*/, '')
  if (!/^<!doctype html[\s>]/i.test(start))
    throw fail('must be a complete HTML document; begin it with <!doctype html>')
}

function invalid(name: unknown, problem: string): TypeError {
  const subject = name === undefined ? 'app' : `app ${truncateJson(name)}`
  return withCode('INVALID_APP', new TypeError(`${subject}: ${problem}`))
}

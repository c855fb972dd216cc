import {
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { spawnSync } from 'node:child_process'
import { afterAll, describe, expect, it } from 'vitest'
import {
  APP_MIME_TYPE,
  type AppOptions,
  app,
  apps,
  clientApps,
  supportsApps,
} from '../../src/apps.js'
import { type Client, type ClientExtension, connect, memory } from '../../src/client.js'
import {
  type Resource,
  type Server,
  type Tool,
  createServer,
  resource,
  result,
  tool,
} from '../../src/index.js'
import { inProcessHttp, matrix } from '../../src/testing.js'
import { RawClient } from './raw-client.js'

const UI = 'io.modelcontextprotocol/ui'
const HTML = '<!doctype html><title>Chart</title>'
const folder = mkdtempSync(join(tmpdir(), 'ccmcp-apps-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const chart = app({
  name: 'chart',
  title: 'Chart',
  html: HTML,
  csp: { connectDomains: ['https://api.example.com'], resourceDomains: ['https://*.example.com'] },
  permissions: ['camera', 'clipboardWrite'],
  domain: 'view.example.com',
  prefersBorder: false,
})
const show = tool({ name: 'show', app: chart, run: () => 'three bars' })
const refresh = tool({
  name: 'refresh',
  app: { page: chart, visibility: ['app'] },
  run: () => 'ok',
})
const helper = tool({ name: 'helper', app: { visibility: ['app'] }, run: () => 'ok' })
const plain = tool({ name: 'plain', meta: { own: 1 }, run: () => 'ok' })

const serverOf = (tools: readonly Tool[] = [show, refresh, helper, plain], options = {}) =>
  createServer({ name: 'x', version: '1', tools, extensions: [apps(options)] })

const listed = async (client: Client) => {
  const { tools } = await client.request('tools/list')
  return Object.fromEntries(tools.map(({ name, _meta }) => [name, _meta]))
}
const read = async (client: Client, uri = 'ui://apps/chart') => {
  const { contents } = await client.request('resources/read', { uri })
  return contents
}

/** What a client may declare, and whether that is support for apps. */
const DECLARATIONS: [what: string, settings: object | undefined, shows: boolean][] = [
  ['our MIME type', { mimeTypes: [APP_MIME_TYPE] }, true],
  [
    'our MIME type in another spelling',
    { mimeTypes: ['x/y', 'Text/HTML; profile="mcp-app"'] },
    true,
  ],
  ['other MIME types', { mimeTypes: ['text/html+mcp', 'text/html'] }, false],
  ['no MIME types', {}, false],
  ['a MIME type that is not in a list', { mimeTypes: APP_MIME_TYPE }, false],
  ['nothing', undefined, false],
]

const shared = serverOf()
const cells = matrix({ memory: memory(shared), http: inProcessHttp(shared) })

describe.each(cells)('apps, $name', ({ connect: open }) => {
  describe.each(DECLARATIONS)('to a client that declares %s', (_, settings, shows) => {
    const extensions: ClientExtension[] =
      settings === undefined ? [] : [{ id: UI, settings: { ...settings } }]

    it(`are ${shows ? '' : 'not '}shown`, async () => {
      const client = await open({ extensions })
      try {
        const ui = { resourceUri: 'ui://apps/chart' }
        const tools = await listed(client)
        expect(tools['show']?.['ui']).toEqual(shows ? ui : undefined)
        expect(tools['show']).toEqual(shows ? { ui } : undefined)
        expect(Object.keys(tools)).toEqual(
          shows ? ['show', 'refresh', 'helper', 'plain'] : ['show', 'plain'],
        )
        if (shows) {
          expect(tools['refresh']).toEqual({ ui: { ...ui, visibility: ['app'] } })
          expect(tools['helper']).toEqual({ ui: { visibility: ['app'] } })
        }
        const { resources } = await client.request('resources/list')
        expect(resources.map(({ uri, mimeType }) => [uri, mimeType])).toEqual(
          shows ? [['ui://apps/chart', APP_MIME_TYPE]] : [],
        )
        if (shows)
          expect(await read(client)).toEqual([
            {
              uri: 'ui://apps/chart',
              mimeType: 'text/html;profile=mcp-app',
              text: HTML,
              _meta: {
                ui: {
                  csp: {
                    connectDomains: ['https://api.example.com'],
                    resourceDomains: ['https://*.example.com'],
                  },
                  permissions: { camera: {}, clipboardWrite: {} },
                  domain: 'view.example.com',
                  prefersBorder: false,
                },
              },
            },
          ])
        else await expect(read(client)).rejects.toThrow('Resource not found')
        expect(await client.callTool('show')).toMatchObject({ content: [{ text: 'three bars' }] })
      } finally {
        await client.close()
      }
    })
  })

  it('are declared by the server', async () => {
    const client = await open()
    expect(client.capabilities).toMatchObject({ extensions: { [UI]: {} }, resources: {} })
    await client.close()
  })
})

describe('the lists of a server with apps', () => {
  it('are private, since they depend on what a client declares', async () => {
    const server = createServer({
      name: 'x',
      version: '1',
      tools: [show],
      extensions: [apps()],
      cache: { ttlMs: 1000, cacheScope: 'public' },
    })
    const client = new RawClient(server)
    for (const method of ['tools/list', 'resources/list'])
      expect(await client.request(method)).toMatchObject({ ttlMs: 1000, cacheScope: 'private' })
    await client.close()
  })

  it('depend on each request in a revision without sessions', async () => {
    const server = serverOf()
    const names = async (capabilities: object) => {
      const client = new RawClient(server, { capabilities })
      const { tools } = (await client.request('tools/list')) as { tools?: { name: string }[] } // by the schema
      await client.close()
      return tools?.map(({ name }) => name)
    }
    expect(await names({ extensions: { [UI]: { mimeTypes: [APP_MIME_TYPE] } } })).toContain(
      'helper',
    )
    expect(await names({})).not.toContain('helper')
  })

  it('show apps to clients that declare nothing if assumeSupport is true', async () => {
    const server = serverOf(undefined, { assumeSupport: true })
    const silent = await connect(memory(server))
    expect(await listed(silent)).toMatchObject({ show: { ui: {} }, helper: { ui: {} } })
    expect(await read(silent)).toHaveLength(1)
    await silent.close()
    const excluding = await connect(memory(server), {
      extensions: [{ id: UI, settings: { mimeTypes: ['text/html'] } }],
    })
    expect(Object.keys(await listed(excluding))).toEqual(['show', 'plain'])
    await excluding.close()
  })

  it('have the page of a tool that is added later', async () => {
    const server = serverOf([plain])
    const client = await connect(memory(server), { extensions: [clientApps()] })
    server.tools.add(show, refresh)
    expect(await listed(client)).toHaveProperty('show.ui.resourceUri', 'ui://apps/chart')
    expect(await read(client)).toHaveLength(1)
    await client.close()
  })

  it('keep other members of _meta', async () => {
    const server = serverOf([{ ...show, meta: { own: 1 } }])
    const client = await connect(memory(server), { extensions: [clientApps()] })
    expect((await listed(client))['show']).toEqual({
      own: 1,
      ui: { resourceUri: 'ui://apps/chart' },
    })
    await client.close()
  })

  it('hide a page from callers who may not see it', async () => {
    const secret = app({
      name: 'secret',
      html: HTML,
      visible: ({ principal }) => principal?.id === 'ann',
    })
    const server = serverOf([tool({ name: 'show', app: secret, run: () => 'x' })])
    for (const [id, count] of [
      ['ann', 1],
      ['bob', 0],
    ] as const) {
      const client = await connect(memory(server, { principal: { id, scopes: [] } }), {
        extensions: [clientApps()],
      })
      expect((await client.request('resources/list')).resources).toHaveLength(count)
      await client.close()
    }
  })
})

describe('the visibility of a tool', () => {
  const uiOf = async (one: Tool) => {
    const client = await connect(memory(serverOf([one])), { extensions: [clientApps()] })
    const { it: meta } = await listed(client)
    await client.close()
    return meta?.['ui']
  }
  const page = app({ name: 'p', html: HTML, visibility: ['model'] })

  it('is that of its page by default', async () => {
    expect(await uiOf(tool({ name: 'it', app: page, run: () => 1 }))).toEqual({
      resourceUri: 'ui://apps/p',
      visibility: ['model'],
    })
  })
  it('is its own otherwise', async () => {
    const own = { page, visibility: ['app', 'model'] } as const
    expect(await uiOf(tool({ name: 'it', app: own, run: () => 1 }))).toEqual({
      resourceUri: 'ui://apps/p',
      visibility: ['app', 'model'],
    })
  })
})

describe('a result without content', () => {
  const contentOf = async (run: Tool['run'], options: Partial<AppOptions> = {}) => {
    const page = app({ name: 'p', html: HTML, ...options })
    const server = serverOf([
      { name: 'it', input: { type: 'object' }, app: page, ...(run && { run }) },
    ])
    const client = await connect(memory(server))
    const { content, isError } = await client.callTool('it')
    await client.close()
    return [content.map((block) => (block.type === 'text' ? block.text : block.type)), isError]
  }
  it('gets a text', async () => {
    expect(await contentOf(() => result({ content: [] }))).toEqual([
      ['The result is shown in p.'],
      false,
    ])
    expect(await contentOf(async () => result({ content: [] }), { fallback: 'Look.' })).toEqual([
      ['Look.'],
      false,
    ])
  })
  it('gets its structured content as text', async () => {
    expect(await contentOf(() => ({ content: [], structuredContent: { sum: 3 } }))).toEqual([
      ['{"sum":3}'],
      false,
    ])
  })
  it('is not changed if it has content, or is an error with a text', async () => {
    expect(await contentOf(() => 'own')).toEqual([['own'], false])
    expect(
      await contentOf(() => {
        throw new Error('broken')
      }),
    ).toEqual([['Tool it failed: broken'], true])
  })
})

describe('the file of an app', () => {
  const file = join(folder, 'page.html')
  const write = (html: string, seconds = 1) => {
    writeFileSync(file, html)
    utimesSync(file, seconds, seconds)
  }

  it('is read again when it has changed', async () => {
    write(`${HTML}one`)
    const page = app({ name: 'p', file })
    const server = serverOf([tool({ name: 'show', app: page, run: () => 'x' })])
    const client = await connect(memory(server), { extensions: [clientApps()] })
    const text = async () => (await read(client, page.uri))[0]?.text
    expect(await text()).toBe(`${HTML}one`)
    write(`${HTML}two`, 2)
    expect(await text()).toBe(`${HTML}two`)
    // The time of change is set back by those who copy files; the inode's own is not.
    write(`${HTML}six`, 2)
    expect(await text()).toBe(`${HTML}six`)
    rmSync(file)
    await expect(text()).rejects.toMatchObject({ code: -32603 })
    write(`${HTML}new`, 3)
    expect(await text()).toBe(`${HTML}new`)
    await client.close()
  })

  it('is a path or a URL, and may begin with a byte order mark and comments', () => {
    write(`\uFEFF<!-- one\n--> <!DOCTYPE HTML>\n<title>x</title>`)
    for (const each of [file, pathToFileURL(file)])
      expect(app({ name: 'p', file: each }).html()).toContain('<title>')
  })

  it('is refused with the code INVALID_APP if it grows beyond maxBytes', () => {
    write(HTML)
    const page = app({ name: 'p', file, maxBytes: 100 })
    truncateSync(file, 101)
    expect(() => page.html()).toThrow('more than 100 bytes')
    truncateSync(file, 100)
    expect(page.html()).toHaveLength(100)
  })

  it.skipIf(process.platform === 'win32')('is not a named pipe, and nothing waits for one', () => {
    const pipe = join(folder, 'pipe')
    spawnSync('mkfifo', [pipe])
    expect(() => app({ name: 'p', file: pipe })).toThrow('not a regular file')
    symlinkSync(pipe, join(folder, 'link'))
    expect(() => app({ name: 'p', file: join(folder, 'link') })).toThrow('not a regular file')
  })
})

describe('app(…) refuses', () => {
  const latin = join(folder, 'latin.html')
  writeFileSync(latin, Buffer.from('<!doctype html>\xe9', 'latin1'))
  const folderPath = join(folder, 'folder')
  mkdirSync(folderPath)

  const page = { name: 'p', html: HTML }
  it.each<[what: string, options: object, message: string]>([
    ['no name', { html: HTML }, '"name" must be 1 to 128'],
    ['a name with a slash', { ...page, name: 'a/b' }, '"name" must be 1 to 128'],
    ['the name ..', { ...page, name: '..' }, '"name" must be 1 to 128'],
    ['another scheme', { ...page, uri: 'https://x/y' }, '"uri" must begin with ui://'],
    ['a URI without a path or host', { ...page, uri: 'ui://' }, '"uri" must begin with ui://'],
    ['a URI template', { ...page, uri: 'ui://x/{id}' }, 'have no variables'],
    ['neither html nor file', { name: 'p' }, 'either "html" or "file"'],
    ['both html and file', { ...page, file: 'x' }, 'either "html" or "file"'],
    ['a fragment of HTML', { name: 'p', html: '<h1>Hi</h1>' }, 'begin it with <!doctype html>'],
    ['html that is not a string', { name: 'p', html: 1 }, '"html" must be a string'],
    ['html that is too large', { ...page, maxBytes: 10 }, 'more than 10 bytes'],
    [
      'html that is too large in UTF-8',
      { name: 'p', html: `${HTML}éé`, maxBytes: HTML.length + 3 },
      'more than',
    ],
    ['maxBytes of 0', { ...page, maxBytes: 0 }, '"maxBytes" must be'],
    ['a missing file', { name: 'p', file: join(folder, 'none.html') }, 'no such file'],
    ['a folder', { name: 'p', file: folderPath }, 'not a regular file'],
    ['a file in another encoding', { name: 'p', file: latin }, 'it is not UTF-8'],
    ['a URL that is no file', { name: 'p', file: new URL('https://x/y') }, 'must be a file: URL'],
    ['a file that is not a path', { name: 'p', file: 1 }, '"file" must be a path'],
    ['a csp that is a list', { ...page, csp: [] }, '"csp" must be an object of connectDomains'],
    ['a typo in the csp', { ...page, csp: { connectDomain: [] } }, 'use connectDomains'],
    [
      'an origin that is not in a list',
      { ...page, csp: { connectDomains: 'https://x.example' } },
      'array of origins',
    ],
    [
      'a path in an origin',
      { ...page, csp: { connectDomains: ['https://x.example/v1'] } },
      'write "https://x.example"',
    ],
    [
      'a trailing slash',
      { ...page, csp: { frameDomains: ['https://*.x.example/'] } },
      'write "https://*.x.example"',
    ],
    [
      'a host without a scheme',
      { ...page, csp: { resourceDomains: ['x.example'] } },
      'must be an origin such as',
    ],
    ['a wildcard alone', { ...page, csp: { resourceDomains: ['*'] } }, 'must be an origin such as'],
    [
      'a wildcard within a name',
      { ...page, csp: { resourceDomains: ['https://a*.x.example'] } },
      'must be an origin',
    ],
    [
      'a directive in an origin',
      { ...page, csp: { connectDomains: ["https://x.example; script-src 'unsafe-eval'"] } },
      'must be an origin',
    ],
    [
      'a keyword of CSP',
      { ...page, csp: { resourceDomains: ["'unsafe-eval'"] } },
      'must be an origin',
    ],
    ['data: URLs', { ...page, csp: { resourceDomains: ['data:'] } }, 'must be an origin'],
    [
      'WebSockets for resources',
      { ...page, csp: { resourceDomains: ['wss://x.example'] } },
      'must be an origin',
    ],
    ['an unknown permission', { ...page, permissions: ['clipboard-write'] }, 'use clipboardWrite'],
    [
      'permissions as an object',
      { ...page, permissions: { camera: {} } },
      '"permissions" must be an array',
    ],
    [
      'a domain with a scheme',
      { ...page, domain: 'https://x.example' },
      '"domain" must be a domain name',
    ],
    [
      'prefersBorder that is a string',
      { ...page, prefersBorder: 'yes' },
      '"prefersBorder" must be true or false',
    ],
    ['an unknown visibility', { ...page, visibility: ['user'] }, '"visibility" must be ["model"]'],
    ['an empty visibility', { ...page, visibility: [] }, '"visibility" must be ["model"]'],
    ['an empty fallback', { ...page, fallback: '' }, '"fallback" must be a text'],
  ])('%s', (_, options, message) => {
    const made = () => app(options as AppOptions) // wrong on purpose
    expect(made).toThrow(message)
    expect(made).toThrow(expect.objectContaining({ name: 'TypeError', code: 'INVALID_APP' }))
  })

  it('unknown options', () => {
    expect(() => app({ ...page, permission: [] } as AppOptions)).toThrow(
      expect.objectContaining({ code: 'UNKNOWN_OPTION' }),
    )
    expect(() => apps({ assume: true } as object)).toThrow('unknown option')
    expect(() => apps({ assumeSupport: 'yes' } as object)).toThrow('true or false')
    expect(() => app(undefined as unknown as AppOptions)).toThrow('pass an object')
  })

  it('nothing of what the specification shows', () => {
    const csp = {
      connectDomains: [
        'https://api.weather.com',
        'wss://realtime.service.com',
        'http://localhost:3000',
      ],
      resourceDomains: ['https://cdn.jsdelivr.net', 'https://*.cloudflare.com'],
      frameDomains: ['https://www.youtube.com', 'http://[::1]:8080'],
      baseUriDomains: ['https://cdn.example.com'],
    }
    expect(app({ ...page, uri: 'ui://weather-server/dashboard-template', csp }).uri).toContain(
      'weather',
    )
  })
})

describe('createServer refuses', () => {
  const refused = (one: object, more: { resources: readonly Resource[] } = { resources: [] }) => {
    const made = tool({ name: 'it', run: () => 1, ...one })
    return () =>
      createServer({ name: 'x', version: '1', tools: [made], extensions: [apps()], ...more })
  }
  it.each<[what: string, definition: object, message: string]>([
    ['an app that is a string', { app: 'chart' }, 'Tool "it": "app" must be made with app'],
    ['an unknown member', { app: { visible: ['app'] } }, 'unknown name "visible"'],
    ['a page of another kind', { app: { page: {} } }, 'not made with app'],
    ['an unknown visibility', { app: { visibility: ['me'] } }, 'must be ["model"]'],
    ['its own _meta.ui', { app: chart, meta: { ui: {} } }, '"meta.ui" is set by "app"'],
    [
      'a _meta.ui without an app',
      { meta: { 'ui/resourceUri': 'ui://x' } },
      '"meta.ui/resourceUri" is set by "app"',
    ],
  ])('a tool with %s', (_, definition, message) => {
    expect(refused(definition)).toThrow(message)
  })

  it('a tool with an app but without the extension', () => {
    expect(() => createServer({ name: 'x', version: '1', tools: [show] })).toThrow(
      `Tool "show": "app" needs the extension ${UI}; add it to "extensions"`,
    )
  })

  it('two pages with the same URI', () => {
    const other = tool({ name: 'other', app: app({ name: 'chart', html: HTML }), run: () => 1 })
    expect(() => serverOf([show, other])).toThrow('"ui://apps/chart" is defined twice')
    const own = resource({ uri: 'ui://apps/chart', read: () => 'x' })
    expect(refused({ app: chart }, { resources: [own] })).toThrow('is defined twice')
  })
})

describe('supportsApps', () => {
  it('tells a handler whether its result is shown in a page', async () => {
    const seen: boolean[] = []
    const server: Server = serverOf([
      tool({ name: 'it', run: (_, call) => seen.push(supportsApps(call.client)) }),
    ])
    for (const extensions of [[], [clientApps()]]) {
      const client = await connect(memory(server), { extensions })
      await client.callTool('it')
      await client.close()
    }
    expect(seen).toEqual([false, true])
  })
})

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Client, connect, memory } from '../../src/client.js'
import { type Listening, listen, tokens } from '../../src/http.js'
import { type Resource, type Server, createServer, resource } from '../../src/index.js'
import { revisions } from '../../src/protocol/revisions/index.js'
import { statelessRequest, send } from '../http/caller.js'

/*
 * A definition that is hidden from a caller cannot be reached by an equal URI
 * or through a template that matches it.
 */

const ALICE = 'alice-0123456789abcdef'
const BOB = 'bob-0123456789abcdef'
const RESTRICTIONS = {
  scopes: { scopes: ['hr'] },
  visible: { visible: ({ principal }) => principal?.scopes.includes('hr') === true },
} satisfies Record<string, Partial<Resource>>

const leak = (value: unknown) => `LEAK ${JSON.stringify(value)}`
/** Templates without restrictions that match the restricted URIs. */
const open = [
  resource({ uri: 'note://{name}', anyPath: true, read: leak }),
  resource({ uri: 'wide://{+path}', anyPath: true, read: leak }),
  resource({ uri: 'db://table{?x,y}', read: leak }),
  resource({ uri: 'doc://{name}{#part}', read: leak }),
  resource({ uri: 'https://{+rest}', read: leak }),
  resource({ uri: 'file:///{+path}', read: leak }),
]
const PROTECTED: Readonly<Record<string, readonly string[]>> = {
  'note://salaries': [
    'note://salaries',
    'note://%73alaries',
    'note://%73%61%6c%61%72%69%65%73',
    'NOTE://salaries',
    'note://SALARIES',
    'note://%53alaries',
    'note://salaries.',
    'note://salaries:',
  ],
  'note://gehälter': [
    'note://gehälter',
    'note://geh%C3%A4lter',
    'note://geh%c3%a4lter',
    'note://geha\u0308lter',
    'note://geha%CC%88lter',
  ],
  'note://a!b(c)': ['note://a!b(c)', 'note://a%21b(c)', 'note://a%21b%28c%29'],
  'note://d%21e': ['note://d%21e', 'note://d!e'],
  'wide://a/b': [
    'wide://a/b',
    'wide://a%2Fb',
    'wide://a%2fb',
    'wide://A/b',
    'wide://a//b',
    'wide://a/b/',
    'wide://a/./b',
    'wide://a/x/../b',
    'wide://a/x%2F..%2Fb',
    'wide://a/%2e/b',
    'wide://a%5Cb',
    'wide:///a/b/../../../a/b',
  ],
  'wide://q?x=1': ['wide://q?x=1', 'wide://q%3Fx=1', 'wide://q?x%3D1'],
  'db://table?x=1&y=': [
    'db://table?x=1&y=',
    'db://table?y=&x=1',
    'db://table?y&x=1',
    'db://table?x=%31&y',
  ],
  'doc://pay': ['doc://pay', 'doc://pay#', 'doc://pay#a', 'DOC://p%61y#a'],
  'doc://plan#secret': ['doc://plan#secret', 'doc://plan#s%65cret'],
  'https://intra.example/pay': [
    'https://intra.example/pay',
    'https://intra.example:443/pay',
    'https://INTRA.example./pay',
    'https://user:pw@intra.example/pay',
    'https://intra.example/pay#x',
    'https://intra.example:/pay',
    'HTTPS://intra.example//pay',
  ],
  'https://[::1]/': [
    'https://[::1]/',
    'https://[0:0:0:0:0:0:0:1]/',
    'https://[::1]',
    'https://[::0001]:443/',
  ],
  'https://127.0.0.1/x': ['https://127.0.0.1/x', 'https://127.1/x', 'https://0x7f000001/x'],
  'file:///etc/pay': [
    'file:///etc/pay',
    'file:////etc/pay',
    'file:///etc//pay',
    'file:///x/../etc/pay',
    'file:///etc/pay/',
    'file:///etc/%70ay',
  ],
}
/** URIs that are similar but not equal: they are not restricted. */
const OTHERS = [
  'note://%2573alaries',
  'note://salaries2',
  'note://wages',
  'wide://a/B',
  'wide://a/b/c',
  'wide://q?x=2',
  'file:///etc/PAY',
  'doc://plan',
  'doc://plan#public',
  'doc://pay%23a',
]

function server(restriction: Partial<Resource>): Server {
  const restricted = Object.keys(PROTECTED).map((uri) =>
    resource({ uri, read: () => `restricted ${uri}`, ...restriction }),
  )
  return createServer({ name: 's', version: '1', resources: [...open, ...restricted] })
}

describe.each(Object.entries(RESTRICTIONS))('a resource with %s', (kind, restriction) => {
  let listening: Listening
  beforeAll(async () => {
    const auth = tokens([
      { token: ALICE, id: 'alice', scopes: ['hr'] },
      { token: BOB, id: 'bob' },
    ])
    listening = await listen(server(restriction), { port: 0, auth })
  })
  afterAll(() => listening.close(0))
  const ask = (token: string, method: string, params: Record<string, unknown>) => {
    const { headers, body } = statelessRequest(method, params)
    const name =
      typeof params['uri'] === 'string'
        ? { 'mcp-name': `=?base64?${Buffer.from(params['uri']).toString('base64')}?=` }
        : {}
    return send(listening.url, {
      body,
      headers: { ...(headers as object), ...name, authorization: `Bearer ${token}` },
    })
  }

  const spellings = Object.entries(PROTECTED).flatMap(([uri, list]) =>
    list.map((each) => [each, uri] as const),
  )
  it.each(spellings)('%s cannot be read by a caller without access', async (spelling, uri) => {
    const { status, text } = await ask(BOB, 'resources/read', { uri: spelling })
    expect(text).not.toContain('LEAK')
    if (/\/\.\.?\/|%2e/i.test(spelling)) expect(text).toContain('Resource not found')
    else
      expect(kind === 'scopes' ? status : text).toEqual(
        kind === 'scopes' ? 403 : expect.stringContaining('Resource not found'),
      )
    if (spelling === uri)
      expect((await ask(ALICE, 'resources/read', { uri })).json).toMatchObject({
        result: { contents: [{ uri, text: `restricted ${uri}` }] },
      })
  })

  it.each(OTHERS)('does not restrict %s', async (uri) => {
    expect((await ask(BOB, 'resources/read', { uri })).text).toContain('LEAK')
  })

  it('is found by every URI that is equal by RFC 3986', async () => {
    for (const uri of ['NOTE://%73alaries', 'note://SALARIES'])
      expect((await ask(ALICE, 'resources/read', { uri })).json).toMatchObject({
        result: { contents: [{ uri, text: 'restricted note://salaries' }] },
      })
  })
})

describe('a definition that is hidden from the caller', () => {
  const hidden = { visible: () => false }
  const using = async (
    resources: Resource[],
    use: (client: Client, server: Server) => Promise<void>,
  ) => {
    const made = createServer({ name: 's', version: '1', resources })
    await using client = await connect(memory(made))
    await use(client, made)
  }
  const read = async (client: Client, uri: string) => {
    const answer = await client
      .request('resources/read', { uri })
      .catch(({ message }: Error) => message)
    return typeof answer === 'string' ? answer : (answer['contents'] as { text: string }[])[0]?.text
  }

  it('also hides URIs that a later template would match, as a template and when disabled', async () => {
    const resources = [
      resource({ uri: 'note://secret-{id}', ...hidden, read: leak }),
      resource({ uri: 'note://off', read: leak }),
      resource({ uri: 'off://{x}', read: leak }),
      resource({ uri: 'note://{name}', read: ({ name }) => name }),
      resource({ uri: 'off://{+y}', read: leak }),
    ]
    await using(resources, async (client, made) => {
      made.resources.disable('NOTE://%6fff')
      made.resources.disable('off://{x}')
      for (const uri of [
        'note://secret-1',
        'note://SECRET-1',
        'note://secret%2D1',
        'note://off',
        'note://%6Fff',
        'off://1',
      ])
        expect(await read(client, uri)).toBe(`Resource not found: ${uri}`)
      expect(await read(client, 'note://other')).toBe('other')
      made.resources.enable('note://off')
      expect(await read(client, 'note://OFF')).toBe('LEAK {}')
    })
  })

  it('is not listed by a template either', async () => {
    const list = () =>
      ['NOTE://a', 'note://b', 'note://c', 'note://%63'].map((uri) => ({ uri, name: uri }))
    const resources = [
      resource({ uri: 'note://a', ...hidden, read: leak }),
      resource({ uri: 'note://{name}', read: leak, list }),
    ]
    await using(resources, async (client) => {
      const { resources: listed } = await client.request('resources/list')
      expect((listed as { uri: string }[]).map(({ uri }) => uri)).toEqual(['note://b', 'note://c'])
    })
  })

  it('cannot be completed by an equal URI or a name that is not a string', async () => {
    const complete = { id: () => ['LEAK'] }
    await using(
      [resource({ uri: 'note://secret-{id}', ...hidden, complete, read: leak })],
      async (client) => {
        for (const uri of ['note://secret-{id}', 'NOTE://secret-{id}', ['note://secret-{id}'], 5])
          await expect(
            client.request<string>('completion/complete', {
              ref: { type: 'ref/resource', uri },
              argument: { name: 'id', value: '' },
            }),
          ).rejects.toMatchObject({ code: -32602 })
      },
    )
  })
})

describe.each(
  revisions.map(
    ({ id, methods }) => [id, methods.clientRequests.includes('resources/subscribe')] as const,
  ),
)('changes in %s', (revision, subscribes) => {
  it('carry the subscribed URI and omit hidden resources', async () => {
    const made = createServer({
      name: 's',
      version: '1',
      resources: [
        resource({ uri: 'note://secret', visible: () => false, read: () => '' }),
        resource({ uri: 'note://{name}', read: ({ name }) => name }),
      ],
    })
    await using client = await connect(memory(made), { revision })
    const heard: unknown[] = []
    client.on('notifications/resources/updated', ({ uri }) => heard.push(uri))
    const uris = [
      'NOTE://Today',
      'note://%74oday',
      'note://%73ecret',
      'note://secret',
      'NOTE://SECRET',
      'note://x/../secret',
      'later://%61',
    ]
    const stop = new AbortController()
    if (subscribes) for (const uri of uris) await client.request('resources/subscribe', { uri })
    else
      void client
        .request(
          'subscriptions/listen',
          { notifications: { resourceSubscriptions: uris } },
          { signal: stop.signal },
        )
        .catch(() => {})
    await client.request('resources/list')
    for (const uri of [
      'note://today',
      'note://secret',
      'NOTE://%73ecret',
      'note://x/../secret',
      'LATER://a',
    ])
      made.updated(uri)
    await client.request('resources/list')
    expect(heard.splice(0)).toEqual(['NOTE://Today', 'note://%74oday', 'later://%61'])
    if (subscribes) {
      await client.request('resources/unsubscribe', { uri: 'NOTE://Today' })
      made.updated('note://TODAY')
      await client.request('resources/list')
      expect(heard).toEqual(['note://%74oday'])
    }
    stop.abort()
  })
})

it('rejects two definitions of equal URIs and definitions that cannot be reached', () => {
  const make = (...uris: string[]) =>
    createServer({
      name: 's',
      version: '1',
      resources: uris.map((uri) => resource({ uri, read: () => '' })),
    })
  expect(() => make('note://a', 'NOTE://%61')).toThrow(
    'Resource "NOTE://%61" is the same as "note://a", which is defined already; leave one of them out',
  )
  expect(() => make('note://a/{x}', 'NOTE://%61/{x}')).toThrow('is the same as')
  expect(() => make('note://a/{x}', 'NOTE://%61/{y}')).toThrow(
    'it matches the same URIs as note://a/{x}',
  )
  expect(() => make('note://a/../b')).toThrow(
    'Resource "note://a/../b": its path has a segment "." or ".."; write the path without it',
  )
  expect(() => make('note://a/%2E/{b}')).toThrow('its path has a segment')
  const server = make('note://a%2Fb', 'note://a/b', 'NOTE://C')
  expect([...server.resources.keys()]).toEqual(['note://a%2Fb', 'note://a/b', 'NOTE://C'])
  expect(server.resources.has('note://c')).toBe(true)
  server.resources.update('note://c', { title: 'C' })
  expect(() => server.resources.update('note://c', { uri: 'note://d' })).toThrow(
    'cannot be renamed',
  )
  expect(server.resources.remove('note://%63')).toBe(true)
})

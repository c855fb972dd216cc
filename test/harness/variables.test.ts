import { describe, expect, it } from 'vitest'
import { type Variables, compareMessages, matches } from '../../src/harness/expectation.js'
import { play } from '../../src/harness/play.js'
import { record } from '../../src/harness/record.js'
import { matchText } from '../../src/harness/text-pattern.js'
import { fill, parseTranscript } from '../../src/harness/transcript.js'
import { createServer, form, tool } from '../../src/index.js'
import { connectInMemory, inProcessHttp, playTranscript } from '../../src/testing.js'

/* Variables and wildcards of transcripts. */

const none = () => undefined

describe('a text pattern', () => {
  it.each<[pattern: string, text: string, found: Record<string, string> | undefined]>([
    ['', '', {}],
    ['', 'x', undefined],
    ['*', '', {}],
    ['**', 'a\nb', {}],
    ['took * ms', 'took 12 ms', {}],
    ['took * ms', 'took  ms', {}],
    ['took * ms', 'took 12 s', undefined],
    ['took * ms', 'it took 12 ms', undefined],
    ['*b', 'abab', {}],
    ['a*b', 'ab', {}],
    ['a*a', 'a', undefined],
    ['*a*b*', 'xaxbx', {}],
    ['*ab*ab', 'abab', {}],
    ['*ab*ab', 'aab', undefined],
    ['order $id', 'order 7', { id: '7' }],
    ['order $id', 'order ', undefined],
    ['$id is $state.', '7 is ready.', { id: '7', state: 'ready' }],
    ['$a-$a', '1-1', { a: '1' }],
    ['$a-$a', '1-2', undefined],
    ['cost \\$5 \\* 2 \\\\', 'cost $5 * 2 \\', {}],
    ['$5 and $', '$5 and $', {}],
    ['a\\b', 'a\\b', {}],
  ])('%j and %j', (pattern, text, found) => {
    const matched = matchText(pattern, text, none)
    expect(matched === undefined ? undefined : Object.fromEntries(matched)).toEqual(found)
  })
  it('matches the stored value of a variable', () => {
    expect(matchText('note $id of *', 'note 7 of 9', () => '7')).toEqual(new Map())
    expect(matchText('note $id of *', 'note 8 of 9', () => '7')).toBeUndefined()
  })
  it('rejects two adjacent wildcards', () => {
    expect(() => matchText('$a$b', 'xy', none)).toThrow(
      'In ~"$a$b", there must be text between two wildcards',
    )
  })
  it('matches in linear time', () => {
    expect(matchText(`${'*a'.repeat(50)}b`, 'a'.repeat(1_000_000), none)).toBeUndefined()
  })
})

describe('an expected message', () => {
  it.each<
    [expected: string, actual: string, differences: string[], variables?: Record<string, unknown>]
  >([
    ['{"id":$id}', '{"id":"x"}', [], { id: 'x' }],
    ['{"a":$x,"b":$x}', '{"b":[1],"a":[1]}', [], { x: [1] }],
    ['{"a":$x,"b":$x}', '{"a":[1],"b":[2]}', ['b is [2], not $x, which is [1]'], { x: [1] }],
    ['{"a":$x,"b":1}', '{"a":"s","b":2}', ['b is 2, not 1'], { x: 's' }],
    ['{"a":$x}', '{}', ['a is missing'], {}],
    ['{"t":~"* of $n"}', '{"t":"3 of 4"}', [], { n: '4' }],
    ['{"t":~"* of $n"}', '{"t":"3 from 4"}', ['t is "3 from 4", not ~"* of $n"'], {}],
    ['{"t":~"1*"}', '{"t":12}', ['t is 12, not ~"1*"'], {}],
    ['{"t":~"say \\"*\\" \\u00e9"}', '{"t":"say \\"hi\\" é"}', [], {}],
    ['{"a":"$x","b":"~*"}', '{"a":"$x","b":"~*"}', [], {}],
    [
      '{"n":$n,"m":$n}',
      '{"n":12345678901234567890,"m":12345678901234567891}',
      ['m is 12345678901234567891, not $n, which is 12345678901234567890'],
    ],
  ])('%s and %s', (expected, actual, differences, found) => {
    const variables: Variables = new Map()
    expect(compareMessages(expected, actual, variables).differences).toEqual(differences)
    if (found !== undefined) expect(Object.fromEntries(variables)).toEqual(found)
  })
  it('sets no variables in `matches` unless the whole message matches', () => {
    const variables: Variables = new Map()
    expect(matches('{"a":$x,"b":1}', '{"a":1,"b":2}', variables)).toBe(false)
    expect(variables.size).toBe(0)
  })
  it('keeps matching wildcards when it is rewritten', () => {
    const expected = '{"id":$id,"n":1,"big":12345678901234567890,"t":~"a \\"*","u":~"b*","x":*}'
    const actual = '{"id":[1],"n":2,"big":12345678901234567890,"t":"a \\"b","u":"c","x":{}}'
    expect(compareMessages(expected, actual, new Map()).written).toBe(
      '{"id":$id,"n":2,"big":12345678901234567890,"t":~"a \\"*","u":"c","x":*}',
    )
  })
})

describe('a sent message', () => {
  const sent = (line: string, values: Record<string, unknown>) => {
    const steps = parseTranscript(`< [$${Object.keys(values).join(',$')}]\n> ${line}`)
    const [, step] = steps
    return step === undefined ? undefined : fill(step, new Map(Object.entries(values)))
  }
  it.each<[line: string, values: Record<string, unknown>, message: string]>([
    ['{"a":$x}', { x: 'a"b' }, '{"a":"a\\"b"}'],
    ['{"a":$x,"b":"$x"}', { x: { y: [1] } }, '{"a":{"y":[1]},"b":"$x"}'],
    ['{"uri":~"note://$id?a=\\\\$b"}', { id: 7 }, '{"uri":"note://7?a=$b"}'],
    ['{"t":~"** $id \\""}', { id: 'x"' }, '{"t":"** x\\" \\""}'],
    ['{nope $x', { x: 1 }, '{nope 1'],
    ['{nope $y', { x: 1 }, '{nope $y'],
    ['~"*"', { x: 1 }, '~"*"'],
    ['*', { x: 1 }, '*'],
  ])('%s', (line, values, message) => {
    expect(sent(line, values)).toBe(message)
  })
  it('must use variables that an earlier line sets', () => {
    expect(() => parseTranscript('> {"a":$x}\n< $x')).toThrow(
      'line 1 sends $x, but no "<" line before it sets it',
    )
    expect(() => parseTranscript('> {"a":~"$x!"}')).toThrow('line 1 sends $x')
  })
})

describe('a transcript with variables', () => {
  let issued = 0
  const server = createServer({
    name: 's',
    version: '1',
    tools: [
      tool({
        name: 'order',
        run: () => `Order ${++issued}-${crypto.randomUUID()} was placed in ${issued} ms`,
      }),
      tool({
        name: 'status',
        input: { type: 'object', properties: { order: { type: 'string' } } },
        run: ({ order }) => `${order} is ready`,
      }),
      tool({
        name: 'ask',
        async run(_, call) {
          const schema = { type: 'object', properties: { ok: { type: 'boolean' } } } as const
          const { sure } = await call.ask({ sure: form({ message: 'Sure?', schema }) })
          return `attempt ${call.attempt}, ${sure.ok}`
        },
      }),
    ],
  })
  const meta =
    '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}'
  const text = (id: number, content: string) =>
    `< {"jsonrpc":"2.0","id":${id},"result":{"resultType":"complete","content":[{"type":"text","text":${content}}],"isError":false,"_meta":*}}`
  const ORDER = [
    `> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"order",${meta}}}`,
    text(1, '~"Order $order was placed in * ms"'),
    `> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"status","arguments":{"order":$order},${meta}}}`,
    text(2, '~"$order is *"'),
  ]
  const ASK = [
    `> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask",${meta}}}`,
    '< {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":*,"requestState":$state,"_meta":*}}',
    `> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask","inputResponses":{"sure":{"action":"accept","content":{"ok":true}}},"requestState":$state,${meta}}}`,
    text(2, '"attempt 2, true"'),
  ]
  const SESSION = [
    '> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}',
    '< {"jsonrpc":"2.0","id":0,"result":*}',
    '> {"jsonrpc":"2.0","method":"notifications/initialized"}',
    '> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}',
    '< {"jsonrpc":"2.0","id":$question,"method":"elicitation/create","params":*}',
    '> {"jsonrpc":"2.0","id":$question,"result":{"action":"accept","content":{"ok":false}}}',
    '< {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":~"*, false"}],"isError":false}}',
  ]

  it.each([
    ['a part of a text', ORDER],
    ['a requestState', ASK],
    ["the id of the server's request", SESSION],
  ])('sends %s back', async (_, lines) => {
    const transcript = `${lines.join('\n')}\n`
    expect(await playTranscript(transcript, server)).toEqual({ differences: [], transcript })
    expect((await play(transcript, inProcessHttp(server).open())).differences).toEqual([])
    expect(await record(transcript, connectInMemory(server))).toEqual({
      transcript,
      unanswered: [],
    })
  })

  it('continues, and keeps its variables, when another member differs', async () => {
    const outdated = ASK.join('\n')
      .replace('"requestState":$state', '"old":1,"requestState":$state')
      .replace('attempt 2', 'attempt 1')
    const { differences, transcript } = await playTranscript(outdated, server)
    expect(differences).toEqual([
      expect.stringContaining('result.old is missing'),
      expect.stringContaining('is "attempt 2, true", not "attempt 1, true"'),
    ])
    // The received message that differs is written with the wildcards of the expected line.
    expect(transcript).toBe(ASK.join('\n'))
    expect(
      (await record(`${outdated}\n`, connectInMemory(server))).transcript.split('\n').slice(0, 3),
    ).toEqual(ASK.slice(0, 3))
  })

  it('stops at a variable without a value', async () => {
    const without = [
      ASK[0],
      '< {"jsonrpc":"2.0","id":1,"result":{"nope":$state}}',
      ASK[2],
      ASK[3],
    ].join('\n')
    const { differences } = await playTranscript(without, server)
    expect(differences.at(-1)).toBe('line 3: not sent, because no value was received for $state')
    expect((await record(without, connectInMemory(server))).unsent).toBe(
      'line 3: no value was received for $state',
    )
  })
})

it('messages with many digits, or a string without an end, are compared in linear time', () => {
  const digits = '1'.repeat(500_000)
  for (const actual of [`[${digits}.5]`, `["${String.raw`\"`.repeat(500_000)}`])
    expect(compareMessages('[1]', actual, new Map()).differences.length).toBe(1)
})

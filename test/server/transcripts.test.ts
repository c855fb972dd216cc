import { readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { revisions } from '../../src/protocol/revisions/index.js'
import { compareMessages, matches } from '../../src/harness/expectation.js'
import { parseTranscript } from '../../src/harness/transcript.js'
import { playTranscript } from '../../src/testing.js'
import { createServer, tool } from '../../src/index.js'
import { askingServer } from './asking-server.js'
import { featureServer } from './feature-server.js'
import { richServer } from './rich-server.js'

/*
 * Transcripts, one folder per revision. `vitest run --update` records the actual
 * messages; review the diff before you commit it.
 */
const folder = fileURLToPath(new URL('../transcripts/', import.meta.url))
const features = new Set(['resources', 'prompts', 'completion', 'logging', 'pagination', 'changes'])

describe.each(revisions.map(({ id }) => id))('%s', (id) => {
  const files = readdirSync(folder + id).filter((name) => name.endsWith('.txt'))
  it('has transcripts of every feature', () => {
    expect(files.map((file) => file.replace('.txt', ''))).toEqual(
      expect.arrayContaining(['tools', 'asking', ...features]),
    )
  })
  it.each(files)('%s', async (file) => {
    const path = `${folder}${id}/${file}`
    const name = file.replace('.txt', '')
    const server =
      name === 'asking' ? askingServer() : features.has(name) ? featureServer() : richServer()
    const { transcript } = await playTranscript(readFileSync(path, 'utf8'), server)
    await expect(transcript).toMatchFileSnapshot(path)
  })
})

describe('a transcript', () => {
  const server = createServer({
    name: 's',
    version: '1',
    tools: [tool({ name: 't', run: () => 'x' })],
  })
  const ping = '> {"jsonrpc":"2.0","id":1,"method":"ping"}'

  it('parses steps and ignores comments', () => {
    expect(parseTranscript('Prose\n> {"a":1}\n\n<{"b":2}\n  > not a step')).toEqual([
      { line: 2, direction: 'send', text: '{"a":1}', variables: [] },
      { line: 4, direction: 'expect', text: '{"b":2}', variables: [] },
    ])
  })
  it('distinguishes the wildcard * from * in a string', () => {
    expect(matches('{"id":*,"a":"*"}', '{"a":"*","id":[1]}')).toBe(true)
    expect(matches('{"id":*,"a":"*"}', '{"a":"x","id":[1]}')).toBe(false)
    expect(matches('{"id":*}', '{}')).toBe(false)
    expect(matches('{"a":{"__proto__":1}}', '{"a":{}}')).toBe(false)
    expect(matches('[1,2]', '[1,2,3]')).toBe(false)
    expect(matches('{"a":[]}', '{"a":{}}')).toBe(false)
  })
  it('reports differences with line and path', async () => {
    const { differences, transcript } = await playTranscript(
      `A test\n${ping}\n< {"jsonrpc":"2.0","id":1,"result":{"a":1}}`,
      server,
    )
    expect(differences).toEqual([
      'line 3:\n  result.a is missing\n  expected {"jsonrpc":"2.0","id":1,"result":{"a":1}}\n  received {"jsonrpc":"2.0","id":1,"result":{}}',
    ])
    expect(transcript).toBe(`A test\n${ping}\n< {"jsonrpc":"2.0","id":1,"result":{}}`)
  })
  it.each([
    ['{"a":1}', '{"a":"1"}', ['a is "1", not 1']],
    ['{"a":{"b":[1,*]}}', '{"a":{"b":[2,3,4]}}', ['a.b[0] is 2, not 1', 'a.b[2] is unexpected: 4']],
    ['{"a":{},"b":*}', '{"a":[]}', ['a is [], not {}', 'b is missing']],
    [
      '{"id":12345678901234567890}',
      '{"id":12345678901234567891}',
      ['id is 12345678901234567891, not 12345678901234567890'],
    ],
    ['{"a":[*]}', '{"a":null}', ['a is null, not [*]']],
    ['[]', 'Listening…', ['it is not JSON']],
    ['{}', '[]', ['it is [], not {}']],
    [`{"a":1}`, `{"a":"${'x'.repeat(300)}"}`, [`a is "${'x'.repeat(199)}…, not 1`]],
  ])('reports the differences of %s and %s', (expected, actual, differences) => {
    expect(compareMessages(expected, actual, new Map()).differences).toEqual(differences)
  })
  it('reports missing and unexpected messages', async () => {
    expect(
      (await playTranscript('< {"jsonrpc":"2.0"}', server, { timeout: 5 })).differences,
    ).toEqual(['line 1: nothing received; expected {"jsonrpc":"2.0"}'])
    expect(
      (await playTranscript(`${ping}\n< *\n${ping}\n${ping}\n< *`, server)).differences,
    ).toEqual(['received after the end: {"jsonrpc":"2.0","id":1,"result":{}}'])
  })
  it('rejects a pattern that is not JSON', async () => {
    await expect(playTranscript(`${ping}\n< {nope`, server)).rejects.toThrow(
      'This expected message is not JSON: {nope',
    )
  })
})

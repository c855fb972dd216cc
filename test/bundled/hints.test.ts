import { expect, it } from 'vitest'
import { ccmcpServer } from '../../src/bundled/ccmcp.js'
import { grammarServer } from '../../src/bundled/grammar.js'
import { textServer } from '../../src/bundled/text.js'
import { connect, memory } from '../../src/client.js'
import { temporaryFolder } from './folder.js'

const roots = [temporaryFolder()]

// Directories of servers require them.
it.each([
  ['ccmcp', ccmcpServer({ roots })],
  ['grammar', grammarServer()],
  ['text', textServer()],
])('every tool of %s has a title and says what it may change', async (_, server) => {
  await using client = await connect(memory(server))
  for await (const { name, title, annotations } of client.tools()) {
    expect(title, name).toMatch(/^[A-Z]/)
    expect(annotations, name).toMatchObject({
      readOnlyHint: expect.any(Boolean) as boolean,
      destructiveHint: expect.any(Boolean) as boolean,
    })
    expect(annotations?.readOnlyHint === true && annotations.destructiveHint === true).toBe(false)
  }
})

it('only write_file and unregister_tool may destroy something', async () => {
  await using client = await connect(memory(ccmcpServer({ roots })))
  const destructive: string[] = []
  for await (const { name, annotations } of client.tools())
    if (annotations?.destructiveHint === true) destructive.push(name)
  expect(destructive).toEqual(['write_file', 'unregister_tool'])
})

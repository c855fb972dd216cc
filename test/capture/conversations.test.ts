import { describe, expect, it } from 'vitest'
import { Analysis } from '../../src/capture/analysis.js'
import { chunkRecord } from '../../src/capture/format.js'
import type { Client, TappedMessage } from '../../src/client.js'
import { type Cell, matrix } from '../../src/testing.js'
import { ABSENT, inTime, targetsOf } from '../client/targets.js'
import { askingServer } from '../interop/asking.mjs'
import { everythingServer } from '../interop/everything.mjs'
import { schemas } from './lines.js'

/* What our own client and server say to each other has no findings, in every revision and on every transport. */

/** The frames of a conversation as records; the findings, except those that say how a session was used. */
class Recorder {
  readonly #analysis = new Analysis(schemas)
  readonly #offsets = { in: 0, out: 0 }
  readonly findings: string[] = []
  #messages = 0

  readonly tap = ({ direction, frame }: TappedMessage): void => {
    const dir = direction === 'out' ? 'in' : 'out'
    const bytes = new TextEncoder().encode(`${frame}\n`)
    this.#add(this.#analysis.add(chunkRecord(dir, ++this.#messages, this.#offsets[dir], bytes)))
    this.#offsets[dir] += bytes.length
  }

  end(): number {
    this.#analysis.add({ type: 'event', event: 'exit', ns: 1 })
    this.#add(this.#analysis.end())
    return this.#messages
  }

  #add(rows: ReturnType<Analysis['add']>): void {
    for (const { findings, method } of rows)
      for (const { rule, detail } of findings)
        if (rule !== 'unused-tools') this.findings.push(`${rule} ${method} ${detail}`)
  }
}

async function conversation(
  cell: Cell,
  use: (client: Client) => Promise<void>,
  options: Parameters<Cell['connect']>[0] = {},
): Promise<void> {
  const recorder = new Recorder()
  const client = await inTime(cell, 'connect', cell.connect({ ...options, tap: recorder.tap }))
  try {
    await inTime(cell, 'the conversation', use(client))
  } finally {
    await inTime(cell, 'close', client.close())
  }
  expect(recorder.end()).toBeGreaterThan(5)
  expect(recorder.findings).toEqual([])
}

async function collect(items: AsyncIterable<unknown>): Promise<void> {
  for await (const item of items) expect(item).toBeTypeOf('object')
}

const present = (cells: readonly Cell[]) => cells.filter(({ absent }) => absent === undefined)

describe.each(present(matrix(targetsOf(everythingServer, 'everything-server.mjs'), ABSENT)))(
  '$name',
  (cell) => {
    it('lists, calls, errors and changes have no findings', () =>
      conversation(cell, async (client) => {
        await collect(client.tools())
        await collect(client.resources())
        await collect(client.resourceTemplates())
        await collect(client.prompts())
        await client.callTool('sum', { a: 2, b: 3 })
        await client.callTool('talk', {}, { onProgress: () => {} })
        await client.callTool('change')
        await client.callTool('fail')
        await expect(client.callTool('missing')).rejects.toThrow('missing')
        await client.readResource('config://app')
        await expect(client.readResource('note://gone')).rejects.toThrow(/note:\/\/gone/)
      }))
  },
)

describe.each(present(matrix(targetsOf(askingServer, 'asking-server.mjs'), ABSENT)))(
  '$name',
  (cell) => {
    // Elicitation is younger than sampling and roots.
    it('questions of a server have no findings', () =>
      conversation(
        cell,
        async (client) => {
          await client.callTool('twice')
          await client.readResource('folder:it')
        },
        {
          roots: () => [{ uri: 'file:///home/ada' }],
          sample: () => ({
            role: 'assistant',
            model: 'none',
            content: { type: 'text', text: 'sampled' },
          }),
        },
      ))
  },
)

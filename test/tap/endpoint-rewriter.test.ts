import { expect, it, onTestFinished, vi } from 'vitest'
import { EndpointRewriter, type Rewritten } from '../../src/tap/endpoint-rewriter.js'

const SERVER = 'http://127.0.0.1:1'
const TAP = 'http://127.0.0.1:2'

function rewritten(text: string, size: number) {
  const rewriter = new EndpointRewriter(SERVER, TAP)
  const changes: Rewritten[] = []
  const bytes = Buffer.from(text, 'latin1')
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; at += size)
    pieces.push(rewriter.push(bytes.subarray(at, at + size), (change) => void changes.push(change)))
  pieces.push(rewriter.end())
  return { text: Buffer.concat(pieces).toString('latin1'), changes }
}

it.each(['\n', '\r\n', '\r'])(
  'finds the event in pieces of any size, with lines ending in %j',
  (end) => {
    const event = (url: string) =>
      [
        `: a comment`,
        '',
        `event: endpoint`,
        `data: ${url} \t`,
        '',
        'data: http://127.0.0.1:1/x',
        '',
      ].join(end)
    const changes = [
      {
        offset: event('').indexOf('data: ') + 6,
        length: `${SERVER}/messages?id=1`.length,
        from: `${SERVER}/messages?id=1`,
        to: `${TAP}/messages?id=1`,
      },
    ]
    for (let size = 1; size < 100; size++)
      expect(rewritten(event(`${SERVER}/messages?id=1`), size), `${size}`).toEqual({
        text: event(`${TAP}/messages?id=1`),
        changes,
      })
  },
)

it('reads each byte of an event that arrives one byte at a time about once', () => {
  let decoded = 0
  const toString = Buffer.prototype.toString
  vi.spyOn(Buffer.prototype, 'toString').mockImplementation(function (this: Buffer, ...args) {
    const text = toString.apply(this, args)
    decoded += text.length
    return text
  })
  onTestFinished(() => void vi.restoreAllMocks())
  const text = `: ${'x'.repeat(10_000)}\n\ndata: 1\n\n`
  expect(rewritten(text, 1).text).toBe(text)
  expect(decoded).toBeLessThan(10 * text.length)
})

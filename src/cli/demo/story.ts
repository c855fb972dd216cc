import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { RULES } from '../../capture/rules.js'
import { newest, newestHandshakeRevision, revisions } from '../../protocol/revisions/index.js'
import { type Piece, styled } from '../print.js'
import { type Frame, excerpt, members, sideBySide } from './columns.js'
import { type Fault, findFaults } from './faults.js'
import { fitted } from '../status-line.js'
import { Stage } from './stage.js'
import { talk, talkInLines } from './talk.js'

const PHOTOS = 12
/** Photos after which the user cancels. */
const ENOUGH = 5
/** Characters that are shown before the bytes of a fault. */
const HEAD = 16

/** Members of messages that are shown. */
const CALL = members(
  'method params name arguments photos requestId result content text error message',
)
const DIALECT = members(
  'method params name result content text resultType protocolVersion _meta io.modelcontextprotocol/protocolVersion',
)
const QUESTION = members(
  'method params result content ok sure resultType inputRequests inputResponses',
)

/** The servers of the demo are files of the package, so that what is shown is what runs. */
const folder = new URL('../examples/demo/', import.meta.url)
const pathOf = (name: string) => fileURLToPath(new URL(name, folder))
const sourceOf = (name: string) => readFileSync(new URL(name, folder), 'utf8')

/** Shows in seven sections what ccmcp does. */
export async function showStory(signal: AbortSignal): Promise<void> {
  const stage = new Stage(signal)
  // In the background: it takes a second.
  const faults = findFaults([process.execPath, pathOf('faulty.mjs')], signal)
  faults.catch(() => {}) // awaited below
  await stage.section('A server in twelve lines')
  await stage.code(sourceOf('server.mjs'))
  const call = await showDialects(stage, signal)
  await showQuestion(stage, signal)
  await showCancellation(stage, signal)
  await showMistakes(stage, signal, call)
  await stage.section("Somebody else's server: ccmcp check finds what clients will stumble over")
  for (const fault of await faults) await showFault(stage, fault)
  await showNext(stage)
}

/** Returns the call in the newest revision. */
async function showDialects(stage: Stage, signal: AbortSignal): Promise<string> {
  await stage.section('A client of 2024 and one of 2026 call it, each in its own dialect')
  const call = (revision: string) =>
    talk(pathOf('server.mjs'), { revision, signal }, (client) =>
      client.callTool('zip', { photos: 2 }, { signal }),
    )
  const first = revisions[0]?.id ?? newest.id
  const [before, now] = await Promise.all([call(first), call(newest.id)])
  const opening = before.filter(({ frame }) => frame.includes('"initialize"'))
  await stage.lines(
    sideBySide(
      { title: first, frames: [...opening, ...fromCall(before)] },
      { title: newest.id, frames: fromCall(now) },
      DIALECT,
      stage.width,
    ),
  )
  return fromCall(now)[0]?.frame ?? ''
}

async function showQuestion(stage: Stage, signal: AbortSignal): Promise<void> {
  await stage.section('A tool asks the user: the same code, whichever revision the client has')
  const [code = ''] = /const .*call\.ask.*/.exec(sourceOf('remove.mjs')) ?? []
  await stage.code(code)
  const elicit = () => ({ action: 'accept' as const, content: { sure: true } })
  const call = (revision: string) =>
    talk(pathOf('remove.mjs'), { revision, signal, elicit }, (client) =>
      client.callTool('remove', {}, { signal }),
    )
  const { id } = newestHandshakeRevision
  const [before, now] = await Promise.all([call(id), call(newest.id)])
  // Neither the call nor its result, which are like those above.
  const [left, right] = [before, now].map((frames) => fromCall(frames).slice(1, -1))
  await stage.lines(
    sideBySide(
      { title: id, frames: left ?? [] },
      { title: newest.id, frames: right ?? [] },
      QUESTION,
      stage.width,
    ),
  )
}

async function showCancellation(stage: Stage, signal: AbortSignal): Promise<void> {
  await stage.section('Progress, until the user cancels: call.signal ends the loop')
  const cancelled = new AbortController()
  const options = { revision: newest.id, signal, pace: stage.isTerminal ? 300 : 1 }
  const zip = talk(pathOf('server.mjs'), options, async (client) => {
    const call = client.callTool(
      'zip',
      { photos: PHOTOS },
      {
        signal: AbortSignal.any([signal, cancelled.signal]),
        onProgress({ progress }) {
          // What was on its way when the user cancelled.
          if (cancelled.signal.aborted) return
          stage.bar('zip', progress, PHOTOS)
          if (progress === ENOUGH) cancelled.abort()
        },
      },
    )
    await call.catch(() => signal.throwIfAborted())
  })
  const frames = await zip.finally(() => stage.endBar())
  const last = frames.findLast(({ frame }) => frame.includes('"notifications/cancelled"'))
  if (last !== undefined) await showFrame(stage, last)
}

/** `call`: a message that the server understands. */
async function showMistakes(stage: Stage, signal: AbortSignal, call: string): Promise<void> {
  await stage.section('A stray console.log and a broken message: the conversation goes on')
  const broken = call.slice(0, call.indexOf('"name"'))
  const { received, stderr } = await talkInLines(pathOf('server.mjs'), [broken, call], signal)
  const stray = stderr.find((line) => line.startsWith('photo')) ?? ''
  await stage.line('  ', styled('detail', '! '), `${stray} `, styled('detail', '(moved to stderr)'))
  await stage.line('  ', styled('sent', '→ '), broken, styled('error', ' cut off'))
  const answers = received.filter((line) => !line.includes('"notifications/'))
  const [error = '{}', result = '{}'] = answers
  await showFrame(stage, { direction: 'in', frame: error })
  await showFrame(
    stage,
    { direction: 'in', frame: result },
    styled('detail', ' (of the next call)'),
  )
}

/** Like a compiler: what is wrong, the bytes, and where the specification says so. */
async function showFault(stage: Stage, { finding, text }: Fault): Promise<void> {
  const { rule, detail, clause } = finding
  const [before, wrong, after] = text
  const what = fitted(detail || RULES[rule].fix, stage.width - rule.length - 4)
  await stage.line('  ', styled('error', `${rule}:`), ` ${what}`)
  const head = before.length > HEAD ? `…${before.slice(1 - HEAD)}` : before
  const room = stage.width - 6 - head.length
  // The whole address if there is room for it.
  const isRoomy = wrong.length + clause.length <= room
  const place = isRoomy ? clause : clause.replace(/^.*specification\//, 'spec ')
  const excess = wrong.length + place.length - room
  const bytes = excess > 0 ? `…${wrong.slice(excess + 1)}` : wrong
  await stage.line(
    '    ',
    styled('detail', head),
    bytes,
    styled('detail', after.slice(0, room - bytes.length)),
  )
  await stage.line(
    ' '.repeat(4 + head.length),
    styled('error', '~'.repeat(bytes.length)),
    styled('detail', ` ${place}`),
  )
}

async function showNext(stage: Stage): Promise<void> {
  const isCheckout = existsSync(new URL('../ccmcp', import.meta.url))
  const command = isCheckout ? './ccmcp' : 'npx ccmcp'
  await stage.section('Next')
  const rows = [
    ['README.md', 'a server of your own, in a host'],
    [`${command} check -- npx some-server`, 'what a server does wrong'],
    [`${command} tap -- npx some-server`, 'record a host and its server'],
  ]
  for (const [name = '', text = ''] of rows)
    await stage.line('  ', styled('name', name.padEnd(38)), text)
}

async function showFrame(
  stage: Stage,
  { direction, frame }: Frame,
  ...note: readonly Piece[]
): Promise<void> {
  const arrow = direction === 'out' ? styled('sent', '→ ') : styled('received', '← ')
  await stage.line('  ', arrow, excerpt(frame, CALL), ...note)
}

/** The messages from the first call on, without notifications. */
function fromCall(frames: readonly Frame[]): Frame[] {
  const start = frames.findIndex(({ frame }) => frame.includes('"tools/call"'))
  return frames.slice(start).filter(({ frame }) => !frame.includes('"notifications/'))
}

import type { FindingSummary } from '../model/finding-store.js'
import type { FrameDetail } from '../model/frame-detail.js'
import { BytesView } from './bytes-view.js'
import { clockText, durationText, line, sizeText } from './format.js'
import { Mark, Name, statusText } from './row-list.js'
import { announce, capture, detail, range, select } from './state.js'
import { TreeView } from './tree-view.js'

const DIRECTION_NAMES = { in: 'Client → server', out: 'Server → client' } as const

/** The selected row: what it is, what is wrong with it, its values and its bytes. */
export function DetailView() {
  const { value: shown } = detail
  if (shown === undefined)
    return (
      <p class="hint">
        Select a message to see its fields and its bytes. Press <kbd>?</kbd> for keyboard shortcuts.
      </p>
    )
  const { row } = shown
  return (
    <div class="detail">
      <header class="detail-head">
        <h2>
          <Name row={row} />
          {row.id === undefined ? undefined : (
            <span class="muted"> #{line(row.id.slice(0, 80))}</span>
          )}
          {row.status === undefined ? undefined : (
            <span class={`badge status-${row.status}`}>{statusText(row.status)}</span>
          )}
        </h2>
        <p class="facts">
          <span>{row.dir === undefined ? 'Event' : DIRECTION_NAMES[row.dir]}</span>
          <span>{row.kind}</span>
          {row.revision === undefined ? undefined : <span>{row.revision}</span>}
          <span>{clockText(capture.value.startedAt + row.ns / 1e6)}</span>
          {row.duration === undefined ? undefined : <span>{durationText(row.duration)}</span>}
          <span>{sizeText(shown.bytes.length)}</span>
          {row.coding === undefined ? undefined : <span>decoded from {line(row.coding)}</span>}
        </p>
        <div class="actions">
          <Peer shown={shown} />
          <button type="button" class="small" onClick={() => void copy(shown)}>
            Copy
          </button>
        </div>
      </header>
      {shown.findings.length === 0 ? undefined : (
        <ul class="cards" aria-label="Findings of this message">
          {shown.findings.slice(0, 20).map((finding) => (
            <FindingCard key={finding.index} finding={finding} />
          ))}
        </ul>
      )}
      <TreeView shown={shown} />
      <BytesView shown={shown} />
    </div>
  )
}

function Peer({ shown: { row, peer } }: { shown: FrameDetail }) {
  if (peer === undefined) return undefined
  const isRequest = peer.kind === 'request' || (peer.kind === 'http' && peer.dir === 'in')
  const name = isRequest ? 'Request' : 'Response'
  return (
    <button type="button" class="small" onClick={() => void select(peer.index)}>
      {name} {peer.index < row.index ? '↑' : '↓'}
    </button>
  )
}

async function copy({ bytes }: FrameDetail): Promise<void> {
  try {
    await navigator.clipboard.writeText(new TextDecoder().decode(bytes).replace(/\r?\n$/, ''))
    announce('Copied')
  } catch {
    announce('The browser does not allow copying')
  }
}

/** Only these are links: they come from the rules, never from a peer. */
const CLAUSES = /^https:\/\/(?:modelcontextprotocol\.io|www\.rfc-editor\.org)\/[\w./#-]*$/

function FindingCard({ finding }: { finding: FindingSummary }) {
  const { rule, severity, detail: what, why, fix, clause, start, end } = finding
  const isShown = range.value?.start === start && range.value.end === end
  return (
    <li class={`card card-${severity}`}>
      <button
        type="button"
        class="card-title"
        aria-pressed={isShown}
        title="Show these bytes"
        onClick={() => void select(finding.row, { start, end })}
      >
        <Mark severity={severity} />
        <strong>{rule}</strong>
        <span class="muted">
          bytes {start}–{end}
        </span>
        {what === '' ? undefined : <span class="card-what">{line(what.slice(0, 300))}</span>}
      </button>
      <p>
        {why} {fix}{' '}
        {CLAUSES.test(clause) ? (
          <a href={clause} target="_blank" rel="noreferrer noopener">
            Specification
          </a>
        ) : undefined}
      </p>
    </li>
  )
}

import { signal, useSignalEffect } from '@preact/signals'
import type { Party, SessionFacts } from '../model/session-facts.js'
import { clockText, countText, line, sizeText } from './format.js'
import { capture, engine, select } from './state.js'

export const facts = signal<SessionFacts[]>([])

/** Keeps the facts up to date while the capture is read. */
export function useSessionFacts(): void {
  useSignalEffect(() => {
    const { handshakes, phase, name } = capture.value
    const key = `${name} ${handshakes} ${phase}`
    if (key === known) return
    known = key
    // If the program has ended, the page says so.
    engine.call('session').then(
      (found) => (facts.value = found),
      () => undefined,
    )
  })
}
let known = ''

/** What client and server have negotiated, and facts of the capture. */
export function SessionView() {
  const { name, by, startedAt, rows, bytesRead, hasExited, unreadable, textsLost } = capture.value
  return (
    <div class="session">
      {facts.value.length === 0 ? <p class="hint">No handshake was recorded.</p> : undefined}
      {facts.value.map((each) => (
        <Handshake key={each.row} each={each} />
      ))}
      <section>
        <h3>Capture</h3>
        <dl>
          <dt>File</dt>
          <dd>{line(name)}</dd>
          <dt>Written by</dt>
          <dd>{line(by.slice(0, 100))}</dd>
          <dt>Started</dt>
          <dd>
            {Number.isNaN(startedAt)
              ? ''
              : `${new Date(startedAt).toLocaleDateString()} ${clockText(startedAt)}`}
          </dd>
          <dt>Contents</dt>
          <dd>
            {countText(rows, 'row')}, {sizeText(bytesRead)}
          </dd>
          <dt>End</dt>
          <dd>
            {hasExited
              ? 'The server has exited.'
              : 'Incomplete: it is still being written, or its writer was killed.'}
          </dd>
          {unreadable > 0 ? (
            <>
              <dt>Damaged</dt>
              <dd>{countText(unreadable, 'line')} skipped</dd>
            </>
          ) : undefined}
          {textsLost > 0 ? (
            <>
              <dt>Memory</dt>
              <dd>{countText(textsLost, 'text')} not kept for the list</dd>
            </>
          ) : undefined}
        </dl>
      </section>
    </div>
  )
}

function Handshake({ each }: { each: SessionFacts }) {
  const { method, requested, revision, client, server, instructions, row } = each
  return (
    <section>
      <h3>
        <button type="button" class="plain" onClick={() => void select(row)}>
          {line(method)}
        </button>
      </h3>
      <dl>
        <dt>Revision</dt>
        <dd>
          <strong>{line((revision ?? 'not negotiated').slice(0, 40))}</strong>
          {requested !== undefined && requested !== revision ? (
            <span class="muted"> (requested: {line(requested.slice(0, 40))})</span>
          ) : undefined}
        </dd>
        <PartyFacts name="Client" party={client} />
        <PartyFacts name="Server" party={server} />
        {instructions === undefined ? undefined : (
          <>
            <dt>Instructions</dt>
            <dd class="instructions">
              {instructions.slice(0, 2000).split('\n').map(line).join('\n')}
            </dd>
          </>
        )}
      </dl>
    </section>
  )
}

function PartyFacts({ name, party }: { name: string; party: Party | undefined }) {
  if (party === undefined) return undefined
  return (
    <>
      <dt>{name}</dt>
      <dd>
        {line(party.name.slice(0, 100))}{' '}
        <span class="muted">{line(party.version.slice(0, 40))}</span>
        <ul class="chips" aria-label={`Capabilities of the ${name.toLowerCase()}`}>
          {party.capabilities.length === 0 ? <li class="muted">no capabilities</li> : undefined}
          {party.capabilities.map((each) => (
            <li key={each} class="chip">
              {line(each.slice(0, 80))}
            </li>
          ))}
        </ul>
      </dd>
    </>
  )
}

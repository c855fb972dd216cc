import { useSignalEffect } from '@preact/signals'
import { line } from './format.js'
import { ListCache } from './row-cache.js'
import { Mark } from './row-list.js'
import { capture, engine, listVersion, range, select, selected } from './state.js'
import { VirtualList } from './virtual-list.js'

const ROW_HEIGHT = 44
const findings = new ListCache((from, to) => engine.call('findings', from, to))

/** All findings of the capture. Selecting one shows its bytes. */
export function FindingsView() {
  const { findingsKept, findings: counts, phase } = capture.value
  useSignalEffect(() => {
    if (listVersion.value >= 0) findings.clear()
  })
  void findings.version.value
  const total = counts.error + counts.warning + counts.info
  if (total === 0)
    return (
      <p class="hint">
        {phase === 'loading' ? 'Nothing was found so far.' : 'Nothing is wrong with this capture.'}
      </p>
    )
  const current = selected.value
  const positions = Array.from({ length: findingsKept < 5000 ? findingsKept : 0 }, (_, at) => at)
  const active = positions.find((at) => isActive(at))
  const show = (position: number) => {
    const found = findings.at(position)
    if (found !== undefined) void select(found.row, { start: found.start, end: found.end })
  }
  function isActive(position: number): boolean {
    const found = findings.at(position)
    return (
      found !== undefined &&
      found.row === current?.row &&
      range.value?.start === found.start &&
      range.value.end === found.end
    )
  }
  return (
    <>
      {findingsKept < total ? (
        <p class="hint">
          The first {findingsKept.toLocaleString('en')} of {total.toLocaleString('en')} findings:
        </p>
      ) : undefined}
      <VirtualList
        id="findings"
        label="Findings"
        role="listbox"
        class="findings"
        count={findingsKept}
        rowHeight={ROW_HEIGHT}
        active={active}
        onWindow={(first, last) => findings.request(first, last, false)}
        onMove={show}
        row={(position, id) => {
          const found = findings.at(position)
          if (found === undefined) return <div id={id} class="finding waiting" role="option" />
          return (
            <div
              id={id}
              class={`finding${isActive(position) ? ' is-active' : ''}`}
              role="option"
              aria-selected={isActive(position)}
              onClick={() => show(position)}
            >
              <Mark severity={found.severity} />
              <span class="finding-text">
                <span class="finding-title">
                  <strong>{found.rule}</strong>
                  <span class="muted">
                    row {found.row + 1}, bytes {found.start}–{found.end}
                  </span>
                </span>
                <span class="finding-why">
                  {found.detail === '' ? found.why : line(found.detail.slice(0, 200))}
                </span>
              </span>
            </div>
          )
        }}
      />
    </>
  )
}

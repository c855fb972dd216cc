import { useEffect } from 'preact/hooks'
import { PANELS } from './link.js'
import { applyFilter, capture, panel, selectFinding, selectPeer, tail } from './state.js'
import { nextTheme } from './theme.js'

/** The id of the list of keys. */
const LIST_ID = 'keys'

const KEYS: readonly (readonly [keys: string, meaning: string])[] = [
  ['↑ ↓ or k j', 'previous or next row, field or row of bytes'],
  ['Page Up, Page Down, Home, End', 'move further'],
  ['Enter', 'from the list to the fields'],
  ['← →', 'collapse or expand a field; previous or next byte'],
  ['n, p', 'next or previous finding'],
  ['r', 'from a request to its response, and back'],
  ['/', 'filter'],
  ['Escape', 'clear the filter; back to the list'],
  ['1 2 3 4', 'message, findings, latency, session'],
  ['f', 'follow a capture that grows'],
  ['t', 'light or dark'],
  ['+ − ← → Home', 'on the timeline: zoom, move, show all'],
]

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLInputElement && target.type !== 'file'
}

/** Keys that work everywhere on the page. */
export function useShortcuts(): void {
  useEffect(() => {
    const controller = new AbortController()
    addEventListener('keydown', onKeyDown, { signal: controller.signal })
    return () => controller.abort()
  }, [])
}

function onKeyDown(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return
  if (event.key === 'Escape') return escape(event)
  if (isTyping(event.target) || list()?.open) return
  if (run(event.key)) event.preventDefault()
}

function escape({ target }: KeyboardEvent): void {
  if (list()?.open) return
  if (isTyping(target)) void applyFilter('')
  document.getElementById('rows')?.focus()
}

/** Returns whether the key has a meaning. */
function run(key: string): boolean {
  const digit = PANELS[Number(key) - 1]
  if (digit !== undefined) panel.value = digit
  else if (key === '/') document.getElementById('filter')?.focus()
  else if (key === 'n') void selectFinding(1)
  else if (key === 'p') void selectFinding(-1)
  else if (key === 'r') void selectPeer()
  else if (key === 'f') tail.value = capture.value.phase === 'following' && !tail.value
  else if (key === 't') nextTheme()
  else if (key === '?') list()?.showModal()
  else return false
  return true
}

function list(): HTMLDialogElement | null {
  return document.querySelector<HTMLDialogElement>(`#${LIST_ID}`)
}

/** The list of keys. Its element holds whether it is open. */
export function Shortcuts() {
  return (
    <dialog id={LIST_ID} aria-label="Keyboard">
      <h2>Keyboard</h2>
      <dl class="keys">
        {KEYS.map(([keys, meaning]) => (
          <>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{meaning}</dd>
          </>
        ))}
      </dl>
      <button type="button" onClick={() => list()?.close()}>
        Close
      </button>
    </dialog>
  )
}

import { useEffect, useRef, useState } from 'preact/hooks'
import { DetailView } from './detail-view.js'
import { FindingsView } from './findings-view.js'
import { countText, line, sizeText } from './format.js'
import { LatencyView } from './latency-view.js'
import { PANELS, type Panel } from './link.js'
import { RowList } from './row-list.js'
import { SessionView, facts, useSessionFacts } from './session-view.js'
import { Shortcuts, useShortcuts } from './shortcuts.js'
import { applyFilter, capture, filter, notice, openFile, panel, tail } from './state.js'
import { nextTheme, theme } from './theme.js'
import { TimelineView } from './timeline-view.js'

const TITLES: Readonly<Record<Panel, string>> = {
  message: 'Message',
  findings: 'Findings',
  latency: 'Latency',
  session: 'Session',
}
const THEMES = { auto: 'Auto', light: 'Light', dark: 'Dark' } as const
const STEPS: Readonly<Record<string, number>> = { ArrowRight: 1, ArrowLeft: -1 }
const PHASES = {
  empty: 'No capture',
  loading: 'Reading',
  following: 'Live',
  ready: '',
  failed: 'Not readable',
} as const

export function App() {
  useSessionFacts()
  useShortcuts()
  const isOver = useDrop()
  const { phase, problem } = capture.value
  const isEmpty = phase === 'empty' || phase === 'failed'
  return (
    <div class={`app${isOver ? ' is-over' : ''}`}>
      <Header />
      {problem === '' || isEmpty ? undefined : (
        <p class="problem" role="alert">
          {line(problem.slice(0, 500))}
        </p>
      )}
      {isEmpty ? <Welcome /> : <Content />}
      <Footer />
      <Shortcuts />
    </div>
  )
}

function Header() {
  // A handshake may be refused at first, for example without a login.
  const session = facts.value.find(({ server }) => server !== undefined) ?? facts.value[0]
  return (
    <header class="bar">
      <h1>
        <span class="brand">ccmcp</span>
        <span class="file" title={line(capture.value.name)}>
          {line(capture.value.name)}
        </span>
      </h1>
      {session === undefined ? undefined : (
        <button
          type="button"
          class="summary"
          title="What was negotiated"
          onClick={() => (panel.value = 'session')}
        >
          <strong>{line((session.revision ?? '').slice(0, 40))}</strong>
          <span>
            {line((session.client?.name ?? 'client').slice(0, 40))} →{' '}
            {line((session.server?.name ?? 'server').slice(0, 40))}
          </span>
        </button>
      )}
      <Filter />
      <OpenFile />
      <button type="button" class="icon" onClick={nextTheme} title="Light or dark">
        {THEMES[theme.value]}
        <span class="hidden"> theme</span>
      </button>
    </header>
  )
}

function Filter() {
  const { text, problem } = filter.value
  return (
    <form class="filter" role="search" onSubmit={(event) => event.preventDefault()}>
      <input
        id="filter"
        type="search"
        aria-label="Filter"
        aria-invalid={problem !== ''}
        aria-describedby="filter-problem"
        placeholder="Filter: method:tools/call status:error dur>100ms"
        autocomplete="off"
        spellcheck={false}
        value={text}
        onInput={({ currentTarget }) => void applyFilter(currentTarget.value)}
      />
      <span id="filter-problem" class="filter-problem" role="status">
        {line(problem)}
      </span>
    </form>
  )
}

function OpenFile() {
  return (
    <label class="icon file-button">
      Open
      <input
        type="file"
        class="hidden"
        aria-label="Open a capture"
        onChange={({ currentTarget }) => {
          const [file] = currentTarget.files ?? []
          if (file !== undefined) openFile(file)
        }}
      />
    </label>
  )
}

function Welcome() {
  const { problem } = capture.value
  return (
    <main class="welcome">
      <h2>Drop a capture here</h2>
      {problem === '' ? undefined : (
        <p class="problem" role="alert">
          {line(problem.slice(0, 500))}
        </p>
      )}
      <p>
        or choose <strong>Open</strong>. <code>ccmcp tap -- COMMAND</code> records one; it is read
        in this page and sent nowhere.
      </p>
    </main>
  )
}

function Content() {
  const { value: shown } = panel
  const { error, warning, info } = capture.value.findings
  const found = error + warning + info
  const onKeyDown = (event: KeyboardEvent) => {
    const step = STEPS[event.key]
    if (step === undefined) return
    const next = PANELS[(PANELS.indexOf(shown) + step + PANELS.length) % PANELS.length] ?? shown
    panel.value = next
    document.getElementById(`tab-${next}`)?.focus()
  }
  return (
    <main class="content">
      <TimelineView />
      <div class="split">
        <section class="left" aria-label="Messages">
          <RowList />
        </section>
        <section class="right" aria-label="Details">
          <div class="tabs" role="tablist" aria-label="Panels" onKeyDown={onKeyDown}>
            {PANELS.map((each) => (
              <button
                key={each}
                id={`tab-${each}`}
                type="button"
                role="tab"
                aria-selected={each === shown}
                aria-controls="panel"
                tabIndex={each === shown ? 0 : -1}
                onClick={() => (panel.value = each)}
              >
                {TITLES[each]}
                {each === 'findings' && found > 0 ? (
                  <span class={`count${error > 0 ? ' has-errors' : ''}`}>
                    {found.toLocaleString('en')}
                  </span>
                ) : undefined}
              </button>
            ))}
          </div>
          <div id="panel" class="panel" role="tabpanel" aria-labelledby={`tab-${shown}`}>
            {shown === 'message' ? <DetailView /> : undefined}
            {shown === 'findings' ? <FindingsView /> : undefined}
            {shown === 'latency' ? <LatencyView /> : undefined}
            {shown === 'session' ? <SessionView /> : undefined}
          </div>
        </section>
      </div>
    </main>
  )
}

function Footer() {
  const { phase, rows, shown, bytesRead, bytesTotal, findings, isFiltering } = capture.value
  const percent = bytesTotal === 0 ? 0 : Math.floor((bytesRead / bytesTotal) * 100)
  return (
    <footer class="bar foot">
      {phase === 'loading' ? (
        <progress aria-label="Reading the capture" max={100} value={percent} />
      ) : undefined}
      <span class={`phase phase-${phase}`}>{PHASES[phase]}</span>
      <span>
        {shown === rows
          ? countText(rows, 'row')
          : `${shown.toLocaleString('en')} of ${countText(rows, 'row')}`}
        {isFiltering ? '…' : ''}
      </span>
      <span class="wide-only">{sizeText(bytesRead)}</span>
      <span class="wide-only">
        {countText(findings.error, 'error')}, {countText(findings.warning, 'warning')},{' '}
        {findings.info.toLocaleString('en')} info
      </span>
      <span class="grow" role="status">
        {notice.value}
      </span>
      {phase === 'following' ? (
        <button
          type="button"
          class="small"
          aria-pressed={tail.value}
          onClick={() => (tail.value = !tail.value)}
        >
          Follow
        </button>
      ) : undefined}
      <span class="wide-only muted">
        Press <kbd>?</kbd> for keyboard shortcuts
      </span>
    </footer>
  )
}

/** A file can be dropped anywhere. Returns whether one is being dragged over the page. */
function useDrop(): boolean {
  const [isOver, setIsOver] = useState(false)
  const depth = useRef(0)
  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    const on = (
      name: 'dragenter' | 'dragleave' | 'dragover' | 'drop',
      run: (event: DragEvent) => void,
    ) =>
      addEventListener(
        name,
        (event) => {
          event.preventDefault()
          run(event)
        },
        { signal },
      )
    on('dragenter', () => setIsOver(++depth.current > 0))
    on('dragleave', () => setIsOver(--depth.current > 0))
    on('dragover', () => undefined)
    on('drop', ({ dataTransfer }) => {
      depth.current = 0
      setIsOver(false)
      const [file] = dataTransfer?.files ?? []
      if (file !== undefined) openFile(file)
    })
    return () => controller.abort()
  }, [])
  return isOver
}

import { signal } from '@preact/signals'

const THEMES = ['auto', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]
const KEY = 'ccmcp-theme'

/** The theme of the system, unless the user has chosen one. */
export const theme = signal<Theme>(stored())
/** Changes when colors change: drawings have to be drawn again. */
export const colors = signal(0)

function stored(): Theme {
  try {
    return THEMES.find((each) => each === localStorage.getItem(KEY)) ?? 'auto'
  } catch {
    return 'auto' // storage is not allowed
  }
}

function apply(): void {
  document.documentElement.style.colorScheme = theme.value === 'auto' ? 'light dark' : theme.value
  colors.value++
}

export function startTheme(): void {
  apply()
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => colors.value++)
}

/** Auto, light, dark, and again. */
export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? 'auto'
  try {
    localStorage.setItem(KEY, theme.value)
  } catch {
    // It holds until the page is closed.
  }
  apply()
}

/** A color of the style, for drawings. Only the browser knows which of two colors applies. */
export function colorOf(name: string): string {
  const version = colors.peek()
  if (known.version !== version) known = { version, names: new Map() }
  const before = known.names.get(name)
  if (before !== undefined) return before
  probe.style.color = `var(--${name})`
  if (!probe.isConnected) document.body.append(probe)
  const { color } = getComputedStyle(probe)
  known.names.set(name, color)
  return color
}

let known = { version: -1, names: new Map<string, string>() }
const probe = document.createElement('span')
probe.hidden = true

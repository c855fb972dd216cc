import { render } from 'preact'
import { App } from './app.js'
import { start } from './state.js'
import { startTheme } from './theme.js'

const root = document.getElementById('app')
if (root !== null) {
  startTheme()
  render(<App />, root)
  start()
}

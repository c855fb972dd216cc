// Ignores end of input and SIGTERM.
import { behave, listen } from './bare.mjs'

process.on('SIGTERM', () => process.stderr.write('SIGTERM? no.\n'))
process.on('SIGINT', () => {})
setInterval(() => {}, 1000)
listen(behave)

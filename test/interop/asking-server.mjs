import { serveStdio } from '../../dist/stdio.js'
import { askingServer } from './asking.mjs'

await serveStdio(askingServer())

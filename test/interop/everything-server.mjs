import { serveStdio } from '../../dist/stdio.js'
import { everythingServer } from './everything.mjs'

await serveStdio(everythingServer())

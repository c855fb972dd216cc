import { serveStdio } from '../../dist/stdio.js'
import { conformanceServer } from './fixture.mjs'

await serveStdio(conformanceServer())

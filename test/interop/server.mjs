import { serveStdio } from '../../dist/stdio.js'
import { interopServer } from './definition.mjs'

await serveStdio(interopServer())

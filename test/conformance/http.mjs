// The fixture over HTTP: prints its URL, and exits at the end of stdin.
import { listen } from '../../dist/http.js'
import { conformanceServer } from './fixture.mjs'

const listening = await listen(conformanceServer(), { port: 0, log: process.stderr })
process.stdout.write(`${listening.url}\n`)
process.stdin.resume().on('end', () => void listening.close(1000))

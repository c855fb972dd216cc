// A program that connects to a server and exits without closing the connection.
import { connect, stdio } from '../../dist/client.js'
import { script } from '../harness.mjs'

const client = await connect(
  stdio(process.execPath, script('servers/stubborn.mjs'), {
    env: { INTEROP_PIDS: process.env.INTEROP_PIDS },
  }),
)
await client.callTool('echo', { message: 'hi' })
process.exit(0)

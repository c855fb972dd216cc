// The official SDK 2.x, with default options or negotiating the revision.
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'

const [, , command, mode] = process.argv
const client = new Client(
  { name: 'sdk-2', version: '1.0.0' },
  mode === undefined ? {} : { versionNegotiation: { mode } },
)
await client.connect(new StdioClientTransport({ command, args: [] }))
const { tools } = await client.listTools()
const { content } = await client.callTool({ name: 'echo', arguments: { message: 'Grüße 👋' } })
process.stdout.write(
  JSON.stringify({ names: tools.map(({ name }) => name), text: content[0].text }),
)
await client.close()

// The official SDK 1.x.
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'

const client = new Client({ name: 'sdk-1', version: '1.0.0' })
await client.connect(new StdioClientTransport({ command: process.argv[2], args: [] }))
const { tools } = await client.listTools()
const { content } = await client.callTool({ name: 'echo', arguments: { message: 'Grüße 👋' } })
process.stdout.write(
  JSON.stringify({ names: tools.map(({ name }) => name), text: content[0].text }),
)
await client.close()

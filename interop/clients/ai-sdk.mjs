// The AI SDK client.
import { createMCPClient } from '@ai-sdk/mcp'
import { Experimental_StdioMCPTransport as Transport } from '@ai-sdk/mcp/mcp-stdio'

const client = await createMCPClient({
  transport: new Transport({ command: process.argv[2], args: [] }),
})
const { tools } = await client.listTools()
const { content } = await client.callTool({ name: 'echo', arguments: { message: 'Grüße 👋' } })
process.stdout.write(
  JSON.stringify({ names: tools.map(({ name }) => name), text: content[0].text }),
)
await client.close()

// The LangChain adapters.
import { MultiServerMCPClient } from '@langchain/mcp-adapters'

const client = new MultiServerMCPClient({
  mcpServers: { ccmcp: { transport: 'stdio', command: process.argv[2], args: [] } },
})
const tools = await client.getTools()
const text = await tools.find(({ name }) => name === 'echo').invoke({ message: 'Grüße 👋' })
process.stdout.write(JSON.stringify({ names: tools.map(({ name }) => name), text }))
await client.close()

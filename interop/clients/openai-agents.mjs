// The OpenAI Agents SDK. It probes in one process and works with another.
import { MCPServerStdio } from '@openai/agents'

const server = new MCPServerStdio({ name: 'ccmcp', command: process.argv[2], args: [] })
await server.connect()
const tools = await server.listTools()
const [{ text }] = await server.callTool('echo', { message: 'Grüße 👋' })
process.stdout.write(JSON.stringify({ names: tools.map(({ name }) => name), text }))
await server.close()

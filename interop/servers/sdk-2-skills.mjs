// The official SDK 2.x with the skills of a folder: node sdk-2-skills.mjs FOLDER
import { McpServer } from '@modelcontextprotocol/server'
import { loadSkills } from '@modelcontextprotocol/server/ext/skills/node'
import { serveStdio } from '@modelcontextprotocol/server/stdio'

const [, , folder] = process.argv
const skills = await loadSkills(folder, { strict: true })

serveStdio(() => {
  const server = new McpServer({ name: 'sdk-2-skills', version: '1.0.0' })
  skills.attach(server)
  return server
})

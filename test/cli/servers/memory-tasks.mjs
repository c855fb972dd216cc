// A server whose tasks no other process can see.
import { createServer, tool } from '../../../dist/index.js'
import { tasks } from '../../../dist/tasks.js'

const one = tool({ name: 'one', task: 'must', run: () => 'done' })
export const server = createServer({ name: 'x', version: '1', tools: [one], extensions: [tasks()] })

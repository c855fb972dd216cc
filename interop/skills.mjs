// Our server with the skills of a folder: node skills.mjs FOLDER
import { createServer } from '../dist/index.js'
import { skills } from '../dist/skills.js'
import { serveStdio } from '../dist/stdio.js'

const [, , folder] = process.argv
await serveStdio(
  createServer({ name: 'skills', version: '1.0.0', extensions: [skills({ folder })] }),
)

import type { Server } from '../../src/index.js'

export function askingServer(): Server

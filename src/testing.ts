export { memoryChannels } from './transports/memory.js'

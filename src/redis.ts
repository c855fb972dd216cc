export { RedisUnavailableError } from './stores/redis/connection.js'
export type { RedisClient } from './stores/redis/link.js'
export { type RedisOptions, type RedisStores, redis } from './stores/redis/redis.js'
export type { RedisTaskOptions } from './stores/redis/task-store.js'

// Runs the benchmarks: servers over stdio and over HTTP, clients over HTTP, tasks, Redis (where it is installed).
//   npm run bench -- [--rounds 5] [--only ccmcp,sdk-2] …
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

for (const name of ['run.mjs', 'http.mjs', 'http-client.mjs', 'tasks.mjs', 'redis.mjs']) {
  const { status } = spawnSync(
    process.execPath,
    [fileURLToPath(new URL(name, import.meta.url)), ...process.argv.slice(2)],
    {
      stdio: 'inherit',
    },
  )
  if (status !== 0) process.exit(status ?? 1)
}

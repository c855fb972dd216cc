// Makes a cluster of server processes and Redis fail in every way that test/cluster-faults/cases.ts has, again and again,
// while clients work, and compares what is there after each fault with everything that was acknowledged.
//
//   node scripts/faults-cluster.mjs [KILLS] [--seed N]     1000 by default, about half an hour
//   node scripts/faults-cluster.mjs --settings             what is lost with other settings of Redis
import { mkdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { rolldown } from 'rolldown'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seed: { type: 'string' }, settings: { type: 'boolean' } },
})

/** The harness is TypeScript, which the oldest supported Node does not run. It must be where packages are found. */
const folder = join(root, 'node_modules', '.cache', `ccmcp-faults-${process.pid}`)
mkdirSync(folder, { recursive: true })
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
const bundle = await rolldown({
  input: join(root, 'test', 'cluster-faults', 'run.ts'),
  platform: 'node',
  external: /^[^./]/,
  logLevel: 'silent',
})
const file = join(folder, 'run.mjs')
await bundle.write({ file, format: 'esm', codeSplitting: false })
await bundle.close()
const { run, compareSettings } = await import(pathToFileURL(file).href)
process.exitCode = values.settings
  ? await compareSettings(root)
  : await run({
      root,
      kills: Number(positionals[0] ?? 1000),
      seed: Number(values.seed ?? Date.now() % 1_000_000),
    })

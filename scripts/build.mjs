// Builds dist/: one bundle an entry with a shared core, and declarations. The
// core exports by name, so that the package's server entries are that one file.
// It is built aside and renamed into place last, so that nobody sees half of it.
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { accelerate } from './accelerate.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const aside = join(root, `dist.${process.pid}`)
const require = createRequire(import.meta.url)

function declarations() {
  const tsc = join(dirname(require.resolve('typescript/package.json')), 'bin', 'tsc')
  const { status } = spawnSync(process.execPath, [tsc, '-p', join(root, 'tsconfig.build.json'), '--outDir', join(aside, 'types')], {
    stdio: ['ignore', 2, 2],
  })
  if (status !== 0) throw new Error('tsc failed')
}

/** What stands for src/schema/full.ts in the core: it loads that file when it is needed. */
const LATER = `
  let full
  const load = () => (full ??= process.getBuiltinModule('node:module').createRequire(import.meta.url)('./schemas.cjs'))
  export const check = (schema, value) => load().check(schema, value)
  export const lint = (schema, options) => load().lint(schema, options)
  export const headerParameters = (schema) => load().headerParameters(schema)
  export const notJsonSchema = (schema) => load().notJsonSchema(schema)
  export const withoutJsonSchema = (schema) => load().withoutJsonSchema(schema)
`

async function schemas() {
  const bundle = await rolldown({ input: { schemas: join(root, 'src', 'schema', 'full.ts') }, platform: 'node' })
  await bundle.write({ dir: aside, format: 'cjs', entryFileNames: '[name].cjs', minify: true, sourcemap: true })
  await bundle.close()
}

/** All bundles; with `later`, the core leaves the larger part of JSON Schema to a file that it loads when it needs it. */
async function bundles(folder, later) {
  const entry = (name) => join(root, 'src', `${name}.ts`)
  const bundle = await rolldown({
    input: {
      index: entry('index'),
      stdio: entry('stdio'),
      http: entry('http'),
      client: entry('client'),
      testing: entry('testing'),
      cli: entry('cli'),
    },
    external: [/^node:/, 'jose'],
    platform: 'node',
    plugins: [{ name: 'load-later', load: (id) => (later && id.endsWith('full.ts') ? LATER : undefined) }],
  })
  await bundle.write({
    dir: folder,
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
    // Half the start-up cost is reading the code: less of it, and in few files.
    minify: true,
    sourcemap: true,
    minifyInternalExports: false,
    codeSplitting: {
      groups: [
        {
          name: 'core',
          test: /src[\\/](framing[\\/](?!event-stream)|(jsonrpc|protocol|schema)[\\/]|server[\\/](?!asking)|transports[\\/](?!http|memory|stdio-(client|diagnosis|isolated))|(index|stdio|serving|version)\.ts)/,
        },
        { name: 'options', test: /src[\\/]cli[\\/](options|command|print|servers|settings)\.ts/ },
        { name: 'connecting', test: /src[\\/](client[\\/]|client\.ts|transports[\\/]stdio-(client|diagnosis))/ },
      ],
    },
  })
  await bundle.close()
}

/** What builds left behind that were killed. */
function sweep() {
  for (const name of readdirSync(root)) {
    const pid = Number(/^dist\.(?:old\.)?(\d+)$/.exec(name)?.[1] ?? process.pid)
    try {
      process.kill(pid, 0)
    } catch (error) {
      if (error.code === 'ESRCH') rmSync(join(root, name), { recursive: true, force: true })
    }
  }
}

sweep()
// What changes while this runs is newer than the mark, and is built next time.
const started = new Date().toISOString()
rmSync(aside, { recursive: true, force: true })
mkdirSync(aside, { recursive: true })
try {
  await bundles(aside, false)
  await bundles(join(aside, 'node'), true)
  await schemas()
  accelerate(aside, join(aside, 'node', 'core.js'))
  rmSync(join(aside, 'node'), { recursive: true })
  declarations()
  chmodSync(join(aside, 'cli.js'), 0o755)
  writeFileSync(join(aside, '.built'), started)
  utimesSync(join(aside, '.built'), new Date(started), new Date(started))
  const old = join(root, `dist.old.${process.pid}`)
  try {
    renameSync(join(root, 'dist'), old)
  } catch (error) {
    if (error.code !== 'ENOENT') throw error
  }
  renameSync(aside, join(root, 'dist'))
  rmSync(old, { recursive: true, force: true })
} finally {
  rmSync(aside, { recursive: true, force: true })
}

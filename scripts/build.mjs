// Builds dist/: one bundle an entry with a shared core, and declarations. The
// core exports by name, so that the package's server entries are that one file.
// It is built aside and renamed into place last, so that nobody sees half of it.
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { buildPage } from './build-page.mjs'
import { CHUNKS, ENTRY_POINTS } from './layers.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const aside = join(root, `dist.${process.pid}`)
const require = createRequire(import.meta.url)

function declarations() {
  const tsc = join(dirname(require.resolve('typescript/package.json')), 'bin', 'tsc')
  const { status } = spawnSync(
    process.execPath,
    [tsc, '-p', join(root, 'tsconfig.build.json'), '--outDir', join(aside, 'types')],
    {
      stdio: ['ignore', 2, 2],
    },
  )
  if (status !== 0) throw new Error('tsc failed')
}

/** A pattern for paths within src as one for paths on disk, also those of Windows. */
function onDisk({ source }) {
  return new RegExp(source.replace('^', 'src\\/').replaceAll('\\/', '[\\\\/]'))
}

/** A file with other characters than those of ASCII is two bytes for each character in memory, and is read slower. */
function toAscii(file) {
  const escaped = readFileSync(file, 'utf8').replaceAll(
    // oxlint-disable-next-line no-control-regex -- all others
    /[^\0-\x7f]/g,
    (unit) => String.raw`\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  writeFileSync(file, escaped)
}

async function bundles() {
  const entry = (name) => join(root, 'src', `${name}.ts`)
  const bundle = await rolldown({
    input: Object.fromEntries(ENTRY_POINTS.map((name) => [name, entry(name)])),
    external: [/^node:/, 'jose', '@opentelemetry/api'],
    platform: 'node',
    // Its build for Node is CommonJS, and imports modules of Node.
    resolve: { alias: { yaml: join(root, 'node_modules', 'yaml', 'browser', 'dist', 'index.js') } },
  })
  await bundle.write({
    dir: aside,
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
    // Lines, the comments that name files, and the names of functions and classes stay: without them the start is not
    // measurably faster, and stacks and what Node prints of the line of an error are read by people. With the names of
    // locals and private members it takes a millisecond more. Maps would be three quarters of the package.
    minify: {
      compress: true,
      mangle: { toplevel: false, keepNames: { function: true, class: true } },
      codegen: { removeWhitespace: false },
    },
    comments: { legal: true, annotation: false, jsdoc: false },
    minifyInternalExports: false,
    codeSplitting: {
      groups: Object.entries(CHUNKS).map(([name, files]) => ({ name, test: onDisk(files) })),
    },
  })
  await bundle.close()
  for (const name of readdirSync(aside)) if (name.endsWith('.js')) toAscii(join(aside, name))
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
  await bundles()
  writeFileSync(join(aside, 'workbench.html'), await buildPage())
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

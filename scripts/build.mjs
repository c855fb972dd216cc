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
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { transformSync } from 'esbuild'
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

/** Local names are shortened, so that less is to be read at the start; those of functions and classes stay, for stacks. */
const minify = {
  compress: true,
  // Without short names at the top level: `breakLines` would have to rename every local with the same name.
  mangle: { toplevel: false, keepNames: { function: true, class: true } },
  codegen: { removeWhitespace: true },
}

/** A pattern for paths within src as one for paths on disk, also those of Windows. */
function onDisk({ source }) {
  return new RegExp(source.replace('^', 'src\\/').replaceAll('\\/', '[\\\\/]'))
}

/** Breaks lines: Node prints the source line of an error, which must not be the whole file. */
function breakLines(file) {
  const map = `${file}.map`
  const bundled = readFileSync(file, 'utf8').replace(/\n\/\/# sourceMappingURL=.*\n?$/, '')
  // esbuild composes the new source map with an inline one.
  const inline = Buffer.from(readFileSync(map)).toString('base64')
  const { code, map: composed } = transformSync(
    `${bundled}\n//# sourceMappingURL=data:application/json;base64,${inline}`,
    {
      minifyWhitespace: true,
      lineLimit: 120,
      format: 'esm',
      target: 'es2023',
      sourcefile: basename(file),
      sourcemap: 'external',
    },
  )
  writeFileSync(file, `${code}//# sourceMappingURL=${basename(map)}\n`)
  writeFileSync(map, composed)
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
    minify,
    comments: { legal: true, annotation: false, jsdoc: false },
    sourcemap: true,
    minifyInternalExports: false,
    codeSplitting: {
      groups: Object.entries(CHUNKS).map(([name, files]) => ({ name, test: onDisk(files) })),
    },
  })
  await bundle.close()
  for (const name of readdirSync(aside))
    if (name.endsWith('.js.map')) breakLines(join(aside, name.slice(0, -'.map'.length)))
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

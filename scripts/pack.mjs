// Packs what a release publishes, into the folder that is given, or the working directory; prints the tarball's path.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { root } from './fresh.mjs'

/** Runs "npm pack" and returns what it says about the one package. */
function npmPack(cwd, args) {
  const options = ['--json', '--ignore-scripts', '--loglevel=error', ...args]
  const output = execFileSync('npm', ['pack', ...options], {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 2],
    shell: process.platform === 'win32',
  })
  const packed = JSON.parse(output)
  return Array.isArray(packed) ? packed[0] : Object.values(packed)[0]
}

/** npm warns of a script "prepare" in a tarball, as if it had still to run. */
function manifest() {
  const facts = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  for (const name of ['scripts', 'devDependencies', 'overrides', 'allowScripts']) delete facts[name]
  return facts
}

const staged = mkdtempSync(join(tmpdir(), 'ccmcp-pack-'))
try {
  for (const { path } of npmPack(root, ['--dry-run']).files)
    cpSync(join(root, path), join(staged, path))
  writeFileSync(join(staged, 'package.json'), `${JSON.stringify(manifest(), undefined, 2)}\n`)
  const destination = resolve(process.argv[2] ?? '.')
  const { filename, size, unpackedSize } = npmPack(staged, ['--pack-destination', destination])
  process.stderr.write(`${size} bytes, ${unpackedSize} unpacked\n`)
  process.stdout.write(`${join(destination, filename)}\n`)
} finally {
  rmSync(staged, { recursive: true, force: true })
}

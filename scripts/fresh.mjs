// Tells setup.mjs and prepare.mjs what is left to do in a checkout.
import { existsSync, readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = dirname(dirname(fileURLToPath(import.meta.url)))

/** The newest modification time of the source files. */
function newest(paths) {
  let time = 0
  for (const path of paths) {
    const stat = statSync(path)
    if (stat.isDirectory())
      time = Math.max(time, newest(readdirSync(path).map((name) => join(path, name))))
    else time = Math.max(time, stat.mtimeMs)
  }
  return time
}

function isFresh(result, sources) {
  return (
    existsSync(result) &&
    statSync(result).mtimeMs >= newest(sources.map((name) => join(root, name)))
  )
}

/** The packages that the build needs are there, if perhaps not in the versions of the lock file. */
export const canBuild = () =>
  ['rolldown', 'esbuild', 'typescript'].every((name) =>
    existsSync(join(root, 'node_modules', name, 'package.json')),
  )

/** Setup writes it when npm has installed everything. */
export const installed = join(root, 'node_modules', '.ccmcp-installed')
/** npm writes it at the end, also without development packages. */
const listed = join(root, 'node_modules', '.package-lock.json')
export const needsInstall = () =>
  !isFresh(installed, ['package-lock.json']) &&
  !(isFresh(listed, ['package-lock.json']) && canBuild())

const built = join(root, 'dist', '.built')
export const needsBuild = () =>
  !isFresh(built, ['src', 'scripts', 'tsconfig.json', 'tsconfig.build.json', 'package.json'])

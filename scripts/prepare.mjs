// npm runs this after it has installed a checkout's packages, when it packs, and for a dependency from git or a folder:
// none of these may end without a dist/. It takes no lock, since setup.mjs may hold it while it waits for npm.
import { canBuild, needsBuild, root } from './fresh.mjs'

try {
  if (needsBuild()) {
    if (!canBuild())
      throw new Error(
        `its development packages are not installed. Run "npm run setup" in ${root}, or install the tarball of a release, which is built`,
      )
    await import('./build.mjs')
  }
} catch (error) {
  process.stderr.write(`ccmcp cannot be built: ${error.message}\n`)
  process.exitCode = 1
}

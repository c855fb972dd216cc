import { chromium, type Browser } from 'playwright-core'
import { findProgram } from './programs.js'

/** The installed Chromium, or undefined; tests in a browser are then skipped. */
export const chromiumPath: string | undefined = findProgram('chromium')

/** Starts Chromium without a window. The caller closes it. */
export async function launchBrowser(): Promise<Browser> {
  if (chromiumPath === undefined) throw new Error('Chromium is not installed')
  return await chromium.launch({
    executablePath: chromiumPath,
    // Containers have no user namespaces for the sandbox, and little shared memory.
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
    // Several processes, on a busy machine.
    timeout: 100_000,
  })
}

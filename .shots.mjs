import { spawn } from 'node:child_process'
import { chromium } from 'playwright-core'
const which = process.argv[2] ?? 'all'
const file = process.argv[3] ?? '/tmp/page/sample.ndjson'
const child = spawn(process.execPath, ['dist/cli.js', 'view', file, '--web'], { stdio: ['ignore', 'pipe', 'inherit'] })
const url = await new Promise((r) => child.stdout.once('data', (d) => r(String(d).trim())))
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-dev-shm-usage'] })
const jobs = { light: ['light', 1440, 900, ''], dark: ['dark', 1440, 900, '&panel=latency'], narrow: ['light', 420, 860, ''], ndark: ['dark', 420, 860, '&panel=findings'], session: ['light', 1440, 900, '&panel=session'], findings: ['light', 1440, 900, '&panel=findings'] }
for (const [name, [scheme, width, height, extra]] of Object.entries(jobs)) {
  if (which !== 'all' && !which.split(',').includes(name)) continue
  const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height } })
  const page = await context.newPage()
  page.on('console', (m) => console.log(name, 'console', m.type(), m.text()))
  page.on('pageerror', (e) => console.log(name, 'pageerror', e.message, e.stack?.slice(0, 600)))
  await page.goto(url + (process.argv[4] ?? '&row=12&bytes=1-2') + extra)
  await page.waitForFunction(() => document.querySelectorAll('.row').length > 5, undefined, { timeout: 20000 }).catch((e) => console.log(e.message))
  await page.waitForTimeout(600)
  await page.screenshot({ path: `/tmp/page/${name}.png` })
  await context.close()
}
await browser.close(); child.kill()

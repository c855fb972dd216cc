#!/usr/bin/env node
// Instead of a browser: follows redirects with cookies, and writes the last page to the file in BROWSER_LOG.
import { appendFileSync } from 'node:fs'

// Tests wait until there are as many pages as browsers.
appendFileSync(`${process.env.BROWSER_LOG}.started`, '\n')
const cookies = new Map()
let at = process.argv[2]
for (let hops = 0; hops < 20; hops++) {
  const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const response = await fetch(at, { redirect: 'manual', headers: { cookie } })
  for (const line of response.headers.getSetCookie()) {
    const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)
    cookies.set(name, value)
  }
  const location = response.headers.get('location')
  const page = await response.text()
  if (location === null) {
    appendFileSync(process.env.BROWSER_LOG, `${response.status} ${page.replaceAll('\n', ' ')}\n`)
    break
  }
  at = new URL(location, at).href
}

import { readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { chromiumPath } from '../browser.js'
import { CLI } from '../cli/command.js'
import { Child } from '../stdio/child.js'
import { Workplace, cells, read } from './open-page.js'
import { sampleCapture } from './sample.js'

// `xdg-open` is replaced by a script that keeps its argument: Linux only.
const isPossible = process.platform === 'linux' && chromiumPath !== undefined

describe.runIf(isPossible)('ccmcp view --web --open', () => {
  let place: Workplace
  beforeAll(() => {
    place = new Workplace()
  })
  afterAll(() => place.close())

  it('shows the capture in the browser, which opens a file and is sent on to the page', async () => {
    const opened = join(place.folder, 'opened')
    const script = '#!/bin/sh\nprintf "%s" "$1" > "$OPENED.part" && mv "$OPENED.part" "$OPENED"\n'
    writeFileSync(join(place.folder, 'xdg-open'), script, { mode: 0o755 })
    const capture = place.file('capture.ndjson', sampleCapture().toString())
    const args = ['view', '--web', '--open', '--filter', 'tool:read_note status:error', capture]
    const child = new Child(process.execPath, [CLI, ...args], {
      env: {
        PATH: [place.folder, process.env['PATH']].join(delimiter),
        TMPDIR: place.folder,
        OPENED: opened,
      },
    })
    const address = await child.line(0)
    await expect.poll(() => readFileSync(opened, 'utf8'), { timeout: 30_000 }).toMatch(/^file:/)
    const page = await place.open(readFileSync(opened, 'utf8'))
    await read(page)
    expect(page.url()).toBe(address)
    await expect.poll(() => cells(page, 'c-status')).toEqual(['error', 'error', 'error'])
    // The browser names the site that the navigation comes from, also when the page is loaded again.
    await page.reload()
    await read(page)
    expect(place.problems).toEqual([])
    child.give('SIGINT')
    await child.closed()
    expect([child.code, child.stderr]).toEqual([0, ''])
  })
})

import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { chromiumPath } from '../browser.js'
import { Workplace, cells } from './open-page.js'
import { CaptureBuilder, text } from './sample.js'

const ATTACKS = [
  '<script>globalThis.hacked = 1</script>',
  '</script><script>globalThis.hacked = 1</script>',
  '<img src=x onerror="globalThis.hacked = 1">',
  '<svg onload="globalThis.hacked = 1">',
  'javascript:globalThis.hacked=1',
  '"><iframe srcdoc="<script>parent.hacked = 1</script>">',
]

describe.skipIf(chromiumPath === undefined)('hostile content', () => {
  let place: Workplace
  beforeAll(() => {
    place = new Workplace()
  })
  afterEach(async () => {
    await place.closePages()
    expect(place.problems.splice(0)).toEqual([])
  })
  afterAll(() => place.close())

  /** Looks at everything that a row can show. */
  async function lookAround(page: Page): Promise<void> {
    await page.locator('#rows').focus()
    const count = Number(await page.locator('#rows').getAttribute('aria-rowcount')) - 1
    for (let i = 0; i < count; i++) {
      await page.keyboard.press('ArrowDown')
      await page.locator(`#rows-${i}[aria-selected=true]`).waitFor()
    }
    for (const key of ['2', '3', '4', '1']) await page.keyboard.press(key)
  }

  it('stays text, wherever it is shown', async () => {
    const capture = new CaptureBuilder()
    for (const [id, attack] of ATTACKS.entries()) {
      const info = { name: attack, title: attack, version: attack }
      capture
        .message('in', {
          id,
          method: 'initialize',
          params: { protocolVersion: attack, capabilities: { [attack]: {} }, clientInfo: info },
        })
        .message('out', {
          id,
          result: {
            protocolVersion: attack,
            capabilities: { [attack]: { [attack]: true } },
            serverInfo: info,
            instructions: attack,
          },
        })
        .call(`${attack} ${id}`, attack, { [attack]: attack }, text(attack))
        .message('in', { id: `e${id}`, method: attack })
        .message('out', { id: `e${id}`, error: { code: -32601, message: attack } })
        .line('out', attack)
        .event(attack, { text: attack, [attack]: attack })
    }
    const page = await place.show(capture.exit().toString())
    await lookAround(page)
    await expect.poll(async () => (await cells(page, 'c-name')).join()).toContain(ATTACKS.at(-1))
    await expect.poll(() => page.evaluate(() => 'hacked' in globalThis)).toBe(false)
    await expect.poll(() => page.locator('iframe, img, svg, .session script').count()).toBe(0)
    const links = await page
      .locator('a')
      .evaluateAll((all) => all.map((each) => each.getAttribute('href') ?? ''))
    for (const link of links)
      expect(link).toMatch(/^https:\/\/(?:modelcontextprotocol\.io|www\.rfc-editor\.org)\//)
  })

  it('cannot reorder or hide text', async () => {
    const capture = new CaptureBuilder().handshake()
    capture.call(
      1,
      'safe\u202Egpj.exe',
      { 'a\u2066b': '\u001B[31mred\u0000' },
      text('\u200Fright\u061C\ntwo'),
    )
    const page = await place.show(capture.exit().toString())
    await expect
      .poll(async () => (await cells(page, 'c-name'))[3])
      .toBe(String.raw`tools/callsafe\u202egpj.exe`)
    await page.locator('#rows [role=row][aria-rowindex="5"]').click()
    await page.getByRole('treeitem').first().waitFor()
    const shown = (await page.locator('#app').textContent()) ?? ''
    expect(shown).toContain(String.raw`a\u2066b`)
    // oxlint-disable-next-line no-control-regex -- none of these may be shown
    expect(shown).not.toMatch(
      /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/,
    )
  })

  it('may be huge or deep', async () => {
    const capture = new CaptureBuilder().handshake()
    const deep = `${'['.repeat(400)}${']'.repeat(400)}`
    capture.line(
      'out',
      `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":${deep}}}`,
    )
    capture.line(
      'out',
      `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":${'['.repeat(5000)}${']'.repeat(5000)}}}`,
    )
    capture.call(1, 'x'.repeat(100_000), {}, text('y'.repeat(2_000_000)))
    capture.call(
      2,
      'many',
      {},
      {
        result: {
          content: [],
          structuredContent: { list: Array.from({ length: 100_000 }, (_, i) => i) },
        },
      },
    )
    const page = await place.show(capture.exit().toString())
    await lookAround(page)
    // A row of the list, a value and the bytes are a small part of it.
    await expect
      .poll(() => page.evaluate(() => document.querySelectorAll('*').length))
      .toBeLessThan(6000)
    await page.getByRole('searchbox').fill('tool:many kind:response')
    await expect.poll(() => cells(page, 'c-size')).toEqual(['575.2 kB'])
    await page.locator('#rows').focus()
    await page.keyboard.press('Home')
    await page.getByRole('treeitem', { name: /^list/ }).click()
    await page.keyboard.press('ArrowRight')
    await page.keyboard.press('End')
    await expect
      .poll(() => page.locator('.path-name').textContent())
      .toBe('result.structuredContent.list[99999]')
  })

  it('on the page of another program gets no answer', async () => {
    const { url } = await place.serve(
      place.file('x.ndjson', new CaptureBuilder().handshake().toString()),
    )
    const other = await place.serve(undefined)
    const page = await place.open(other.url)
    const origin = new URL(url).origin
    const answers = await page.evaluate(async (address) => {
      const get = async (mode: RequestMode) => {
        try {
          return (await fetch(`${address}/api/capture`, { mode })).status
        } catch {
          return 'refused'
        }
      }
      return [await get('cors'), await get('no-cors')]
    }, origin)
    expect(answers).toEqual(['refused', 'refused'])
    place.problems.splice(0) // the policy of the page refuses it, and says so
  })
})

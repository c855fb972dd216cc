import { appendFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { encodeRecord } from '../../src/capture/format.js'
import { chromiumPath } from '../browser.js'
import { HTML_PATH, Workplace, cells, markedBytes, read } from './open-page.js'
import { CaptureBuilder, sampleCapture, text } from './sample.js'

describe.skipIf(chromiumPath === undefined)('the page', () => {
  let place: Workplace
  beforeAll(() => {
    place = new Workplace()
  })
  afterEach(async () => {
    await place.closePages()
    expect(place.problems.splice(0)).toEqual([])
  })
  afterAll(() => place.close())

  const row = (page: Page, number: number) =>
    page.locator(`#rows [role=row][aria-rowindex="${number + 1}"]`)

  it('lists messages, with what was negotiated and how many findings there are', async () => {
    const page = await place.show(sampleCapture().toString())
    await expect
      .poll(async () => (await cells(page, 'c-name')).slice(0, 6))
      .toEqual([
        'spawn',
        'initialize',
        'initialize',
        'notifications/initialized',
        '✕invalid',
        'tools/list',
      ])
    await expect.poll(() => row(page, 3).locator('.c-dur').textContent()).toBe('38.0 ms')
    await expect
      .poll(() => page.locator('.summary').textContent())
      .toBe('2025-11-25example-host → notes')
    await expect.poll(() => page.locator('#tab-findings').textContent()).toBe('Findings7')
    await expect.poll(() => page.locator('.foot').textContent()).toContain('102 rows')
    await expect
      .poll(() => page.locator('.foot').textContent())
      .toMatch(/\d errors?, \d warnings?, \d info/)
  })

  it('filters with the language of the terminal', async () => {
    const page = await place.show(sampleCapture().toString())
    await page.getByRole('searchbox', { name: 'Filter' }).fill('tool:read_note status:error')
    await expect.poll(() => cells(page, 'c-status')).toEqual(['error', 'error', 'error'])
    await expect.poll(() => page.url()).toContain('filter=tool%3Aread_note+status%3Aerror')
    await page.getByRole('searchbox').fill('speed:1')
    await expect
      .poll(() => page.locator('#filter-problem').textContent())
      .toContain('unknown field "speed"')
    await page.keyboard.press('Escape')
    await expect.poll(() => page.locator('.foot').textContent()).toContain('102 rows')
    await expect.poll(() => page.getByRole('searchbox').inputValue()).toBe('')
  })

  it('marks the bytes of a field, and the field of a byte', async () => {
    const capture = new CaptureBuilder()
      .handshake()
      .call(1, 'add', { word: 'café', n: 7 }, text('ok'))
    const page = await place.show(capture.toString())
    await row(page, 4).click()
    await page.getByRole('treeitem', { name: 'word: "café"' }).click()
    // Two bytes of UTF-8 are two bytes.
    await expect.poll(() => markedBytes(page)).toBe('"word":"caf··"')
    await expect.poll(() => page.locator('.path-name').textContent()).toBe('params.arguments.word')
    const bytes = page.locator('#bytes .ascii .byte')
    const shown = (await bytes.allTextContents()).join('')
    await bytes.nth(shown.indexOf('tools/call')).click()
    await expect.poll(() => markedBytes(page)).toBe('"method":"tools/call"')
    const selected = page.locator('#tree [aria-selected=true]')
    await expect.poll(() => selected.textContent()).toBe('method"tools/call"')
    // The newline belongs to no field.
    await page.locator('#bytes .hex .byte').last().click()
    await expect.poll(() => selected.count()).toBe(0)
    await expect.poll(() => markedBytes(page)).toBe('·')
  })

  it('collapses a value that contains the selected one, and expands it for the next selection', async () => {
    const capture = new CaptureBuilder()
      .handshake()
      .call(1, 'add', { word: 'plum', n: 7 }, text('ok'))
    const page = await place.show(capture.toString())
    await row(page, 4).click()
    const word = page.getByRole('treeitem', { name: /^word/ })
    const parameters = page.getByRole('treeitem', { name: /^params/ })
    await word.click()
    await parameters.locator('.twisty').click()
    await expect.poll(() => parameters.getAttribute('aria-expanded')).toBe('false')
    await expect.poll(() => parameters.getAttribute('aria-selected')).toBe('true')
    expect(await word.count()).toBe(0)
    const bytes = page.locator('#bytes .ascii .byte')
    const shown = (await bytes.allTextContents()).join('')
    await bytes.nth(shown.indexOf('plum')).click()
    await expect.poll(() => word.getAttribute('aria-selected')).toBe('true')
    expect(await parameters.getAttribute('aria-expanded')).toBe('true')
  })

  it('jumps from a finding to its bytes', async () => {
    const page = await place.show(sampleCapture().toString(), '&panel=findings')
    await page.getByRole('option', { name: /schema/ }).click()
    await expect.poll(() => page.locator('#rows [aria-selected=true]').count()).toBe(1)
    await page.getByRole('tab', { name: 'Message' }).click()
    await expect.poll(() => markedBytes(page)).toBe('"loud"')
    await expect.poll(() => page.locator('.path-name').textContent()).toBe('params.level')
    await page.locator('#rows').focus()
    await page.keyboard.press('n')
    await expect.poll(() => markedBytes(page)).toBe('"id"')
  })

  it('shows the same again at the address of the page', async () => {
    const page = await place.show(sampleCapture().toString(), '&filter=method:tools/call')
    await page.locator('#rows').focus()
    await page.keyboard.press('End')
    await expect.poll(() => page.locator('#rows [aria-selected=true]').count()).toBe(1)
    await page.getByRole('treeitem', { name: /^result/ }).click()
    await expect.poll(() => markedBytes(page)).toContain('"result":')
    const marked = await markedBytes(page)
    const chosen = await page.locator('#rows [aria-selected=true] .c-id').textContent()
    await expect.poll(() => page.url()).toMatch(/row=\d+&bytes=\d+-\d+&filter=/)
    const again = await place.open(page.url())
    await read(again)
    await expect.poll(() => markedBytes(again)).toBe(marked)
    await expect
      .poll(() => again.locator('#rows [aria-selected=true] .c-id').textContent())
      .toBe(chosen)
    await expect.poll(() => again.getByRole('searchbox').inputValue()).toBe('method:tools/call')
  })

  it('is operated with the keyboard', async () => {
    const page = await place.show(sampleCapture().toString())
    await page.locator('#rows').focus()
    for (const key of ['ArrowDown', 'ArrowDown', 'j']) await page.keyboard.press(key)
    await expect.poll(() => page.locator('.detail h2').textContent()).toContain('initialize')
    await expect
      .poll(() => page.locator('#rows').getAttribute('aria-activedescendant'))
      .toBe('rows-2')
    await page.keyboard.press('r')
    await expect
      .poll(() => page.locator('#rows').getAttribute('aria-activedescendant'))
      .toBe('rows-1')
    await expect.poll(() => page.locator('.facts').textContent()).toContain('request')
    await page.locator('#rows').focus()
    await page.keyboard.press('Enter')
    await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe('tree')
    for (const key of ['Home', 'End', 'ArrowUp']) await page.keyboard.press(key)
    await expect.poll(() => markedBytes(page)).toBe('"name":"example-host"')
    // The parent, collapsed.
    for (const key of ['ArrowLeft', 'ArrowLeft']) await page.keyboard.press(key)
    await expect
      .poll(() => page.getByRole('treeitem', { name: /^clientInfo/ }).getAttribute('aria-expanded'))
      .toBe('false')
    // The keyboard stays in the fields when they are those of another message.
    await page.keyboard.press('r')
    await expect.poll(() => page.locator('.facts').textContent()).toContain('response')
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('tree')
    await page.keyboard.press('End')
    await expect
      .poll(() => page.locator('#tree [role=treeitem]').last().getAttribute('aria-selected'))
      .toBe('true')
    await page.locator('#bytes').focus()
    await page.keyboard.press('ArrowRight')
    await page.keyboard.press('ArrowDown')
    await expect.poll(() => page.locator('#bytes .ascii .byte.caret').count()).toBe(1)
    await page.keyboard.press('3')
    await expect.poll(() => page.getByRole('tab', { selected: true }).textContent()).toBe('Latency')
    await page.keyboard.press('?')
    await expect.poll(() => page.getByRole('dialog', { name: 'Keyboard' }).isVisible()).toBe(true)
    await page.keyboard.press('Escape')
    await expect.poll(() => page.getByRole('dialog').count()).toBe(0)
    await page.keyboard.press('/')
    await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe('filter')
  })

  it('has names and roles for everything that is operated', async () => {
    const page = await place.show(sampleCapture().toString(), '&row=1')
    await page.getByRole('treeitem').first().waitFor()
    for (const expected of [
      /searchbox "Filter"/,
      /grid "Messages"/,
      /columnheader "Duration"/,
      /tree "Decoded fields"/,
      /treeitem .*level=1/,
      /grid "Bytes, 16 in a row"/,
      /tablist "Panels"/,
      /tab "Message" \[selected\]/,
      /img "Requests over/,
    ])
      await expect.poll(() => page.locator('body').ariaSnapshot()).toMatch(expected)
    await expect.poll(() => page.locator('#rows').getAttribute('aria-rowcount')).toBe('103')
    const unnamed = await page
      .locator('button, input, [role=grid], [role=tree], [role=img], [tabindex="0"]')
      .evaluateAll((elements) =>
        elements
          .filter(
            (element) =>
              (element.getAttribute('aria-label') ?? element.textContent ?? '').trim() === '',
          )
          .map((element) => element.outerHTML),
      )
    expect(unnamed).toEqual([])
  })

  it('follows a capture that grows, and a newer one', async () => {
    const capture = new CaptureBuilder().handshake()
    const first = place.file('a.ndjson', capture.toString())
    let newest = first
    const { url } = await place.serve(first, () => newest)
    const page = await place.open(url)
    await expect.poll(() => page.locator('.foot').textContent()).toContain('Live3 rows')
    const before = capture.records.length
    for (let id = 1; id <= 100; id++) capture.call(id, 'add', {}, text('1'))
    capture.message('in', { id: 101, method: 'tools/call', params: { name: 'last' } })
    appendFileSync(first, capture.records.slice(before).map(encodeRecord).join(''))
    await expect.poll(() => page.locator('.foot').textContent()).toContain('204 rows')
    // The end is shown, and a request without a response.
    await expect.poll(async () => (await cells(page, 'c-name')).at(-1)).toBe('tools/calllast')
    await expect.poll(async () => (await cells(page, 'c-status')).at(-1)).toBe('pending')
    await page.locator('#rows').focus()
    await page.keyboard.press('Home')
    await expect
      .poll(() => page.getByRole('button', { name: 'Follow' }).getAttribute('aria-pressed'))
      .toBe('false')
    newest = place.file('b.ndjson', new CaptureBuilder().handshake().toString())
    await expect.poll(() => page.locator('.file').textContent()).toBe('b.ndjson')
    await expect.poll(() => page.locator('.foot').textContent()).toContain('Live3 rows')
  })

  it('keeps what was read when the program has ended', async () => {
    const { server, url } = await place.serve(
      place.file('a.ndjson', new CaptureBuilder().handshake().toString()),
      () => undefined,
    )
    const page = await place.open(url)
    await expect.poll(() => page.locator('.foot').textContent()).toContain('Live3 rows')
    await server.close()
    await expect.poll(() => page.getByRole('alert').textContent()).toContain('ccmcp has ended')
    await expect.poll(() => cells(page, 'c-name')).toContain('initialize')
    // The notice disappears after a moment; the next click shows it again.
    const clicked = async () => {
      await row(page, 2).click()
      return await page.locator('.foot [role=status]').textContent()
    }
    await expect.poll(clicked).toContain('has ended')
  })

  it.each(['http', 'file'])('opens a file that is dropped, from %s:', async (protocol) => {
    const { url } = await place.serve(undefined)
    const page = await place.open(
      protocol === 'http'
        ? url.replace(/#.*/, '#token=wrong')
        : pathToFileURL(HTML_PATH.pathname).href,
    )
    if (protocol === 'http')
      await expect.poll(() => page.getByRole('alert').textContent()).toContain('token')
    await expect
      .poll(() => page.getByRole('heading', { name: 'Drop a capture here' }).isVisible())
      .toBe(true)
    const drop = async (content: string) => {
      const data = await page.evaluateHandle((text) => {
        const transfer = new DataTransfer()
        transfer.items.add(new File([text], 'dropped.ndjson'))
        return transfer
      }, content)
      await page.dispatchEvent('body', 'drop', { dataTransfer: data })
    }
    await drop('{"not":"a capture"}\n')
    await expect.poll(() => page.getByRole('alert').textContent()).toContain('it is not a capture')
    await drop(sampleCapture().toString())
    await read(page)
    await row(page, 2).click()
    await page.getByRole('treeitem', { name: /^protocolVersion/ }).click()
    await expect.poll(() => markedBytes(page)).toBe('"protocolVersion":"2025-11-25"')
    await expect.poll(() => page.url()).toContain('bytes=')
    expect(page.url()).not.toContain('token')
  })

  it('shows the bytes of a frame from several chunks, and of what is not JSON', async () => {
    const capture = new CaptureBuilder().handshake()
    const bytes = new TextEncoder().encode(
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"é"}}\n',
    )
    const inside = bytes.indexOf(0xc3) + 1
    capture
      .bytes('in', bytes.slice(0, 10))
      .message('out', { method: 'notifications/message', params: { level: 'info', data: 1 } })
    capture.bytes('in', bytes.slice(10, inside)).bytes('in', bytes.slice(inside))
    capture.bytes('out', Uint8Array.of(0x7b, 0xff, 0xfe, 0x0a))
    const page = await place.show(capture.exit().toString())
    await row(page, 5).click()
    await page.getByRole('treeitem', { name: 'name: "é"' }).click()
    await expect.poll(() => markedBytes(page)).toBe('"name":"··"')
    await row(page, 6).click()
    await expect.poll(() => page.locator('.tree').textContent()).toContain('not JSON')
    await expect.poll(() => page.locator('#bytes .hex').textContent()).toBe('7bfffe0a')
    await expect.poll(() => page.locator('#bytes .hex .found-error').textContent()).toBe('ff')
  })

  it('scrolls with the same elements, in the order of the rows and in their places', async () => {
    const capture = new CaptureBuilder().handshake()
    for (let id = 1; id <= 3000; id++) capture.message('in', { id, method: 'ping' })
    const page = await place.show(capture.exit().toString())
    await page.locator('#rows .slot').evaluateAll((slots) => {
      for (const slot of slots) slot.setAttribute('data-first', '')
    })
    const scroller = page.locator('#rows .scroller')
    for (const top of [600, 36_000, 35_400, 71_000, 0, 30]) {
      await scroller.evaluate((element, value) => {
        element.scrollTop = value
      }, top)
      const expected = { isOrdered: true, isFilled: true, isInPlace: true, isReused: true }
      const look = () =>
        scroller.evaluate((element, offset) => {
          const rows = [...element.querySelectorAll('[role=row]')]
          const numbers = rows.map((each) => Number(each.getAttribute('aria-rowindex')) - 2)
          const { top: edge } = element.getBoundingClientRect()
          const places = rows.map((each) => each.getBoundingClientRect().top - edge)
          return {
            isOrdered: numbers.every((number, i) => number === (numbers[0] ?? 0) + i),
            // The rows of the handshake come first.
            isFilled: rows.every(
              (each, i) =>
                (numbers[i] ?? 0) < 3 ||
                each.querySelector('.c-id')?.textContent === String((numbers[i] ?? 0) - 2),
            ),
            isInPlace: numbers.every((number, i) => places[i] === number * 24 - offset),
            isReused: element.querySelectorAll('[data-first]').length > 25,
          }
        }, top)
      await expect.poll(look).toEqual(expected)
    }
  })

  it('plots latency with percentiles', async () => {
    const page = await place.show(sampleCapture().toString(), '&panel=latency')
    await page.locator('.plot-area canvas').waitFor()
    await expect
      .poll(() => page.locator('.latency tbody tr').first().textContent())
      .toBe('search tools/call1406.00 ms130.0 ms130.0 ms130.0 ms')
    await page.getByRole('button', { name: /read_note/ }).click()
    await expect
      .poll(() => page.locator('.plot figcaption').textContent())
      .toBe('read_notep50 3.00 msp95 65.0 msp99 65.0 ms')
  })

  it('shows a request on the timeline, and selects it there', async () => {
    const page = await place.show(sampleCapture().toString())
    const canvas = page.locator('.timeline canvas')
    const isDrawn = () =>
      canvas.evaluate((element: HTMLCanvasElement) => {
        const { data = [] } = element.getContext('2d')?.getImageData(0, 0, element.width, 20) ?? {}
        return new Set(data).size > 20
      })
    await expect.poll(isDrawn).toBe(true)
    // The first bar is the request initialize.
    const clicked = async () => {
      await canvas.click({ position: { x: 120, y: 10 } })
      return (await page.locator('.detail h2').allTextContents()).join()
    }
    await expect.poll(clicked).toContain('initialize')
    await canvas.focus()
    await page.keyboard.press('+')
    await expect.poll(() => page.getByRole('button', { name: 'Show all' }).isVisible()).toBe(true)
    await page.keyboard.press('Home')
    await expect.poll(() => page.getByRole('button', { name: 'Show all' }).count()).toBe(0)
  })

  it('shows what was negotiated', async () => {
    const page = await place.show(sampleCapture().toString(), '&panel=session')
    await expect.poll(() => page.locator('.session').textContent()).toContain('example-host 2.1.0')
    const chips = page.getByRole('list', { name: 'Capabilities of the server' })
    await expect
      .poll(() => chips.getByRole('listitem').allTextContents())
      .toEqual(['tools', 'tools.listChanged', 'resources', 'logging'])
  })

  it.each(['light', 'dark'] as const)(
    'is %s if the system is, until the user chooses',
    async (scheme) => {
      const page = await place.show(sampleCapture().toString(), '', { colorScheme: scheme })
      const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
      const colors = { light: 'rgb(255, 255, 255)', dark: 'rgb(20, 22, 26)' }
      await expect.poll(() => background()).toBe(colors[scheme])
      const button = page.getByRole('button', { name: / theme$/ })
      await button.click()
      await expect.poll(() => background()).toBe(colors.light)
      await button.click()
      await expect.poll(() => background()).toBe(colors.dark)
      await page.reload()
      await expect.poll(() => background()).toBe(colors.dark)
    },
  )

  it('draws the timeline again when the theme changes', async () => {
    const page = await place.show(sampleCapture().toString(), '', { colorScheme: 'light' })
    const drawing = () =>
      page
        .locator('.timeline canvas')
        .evaluate((canvas) => (canvas as HTMLCanvasElement).toDataURL())
    const button = page.getByRole('button', { name: / theme$/ })
    await button.click()
    await button.click()
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
    await expect.poll(() => background()).toBe('rgb(20, 22, 26)')
    const switched = await drawing()
    await page.reload()
    await expect.poll(() => drawing()).toBe(switched)
  })

  it.each([420, 900, 1440])('fits into %i pixels', async (width) => {
    const page = await place.show(sampleCapture().toString(), '&row=3', {
      viewport: { width, height: 800 },
    })
    await page.getByRole('treeitem').first().waitFor()
    const outside = await page.evaluate(() =>
      [...document.querySelectorAll('button, input, canvas, [role=grid], [role=tree], [role=tab]')]
        .filter((element) => element.getBoundingClientRect().right > innerWidth + 1)
        .map((element) => element.outerHTML.slice(0, 80)),
    )
    expect(outside).toEqual([])
    await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBe(width)
  })
})

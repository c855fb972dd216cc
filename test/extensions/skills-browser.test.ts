import { createServer as createHttpServer } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { expect, test } from 'vitest'
import { nodeHandler } from '../../src/http.js'
import { createServer } from '../../src/index.js'
import { skills } from '../../src/skills.js'
import { chromiumPath, launchBrowser } from '../browser.js'
import { folderWith, skillText } from './skill-folders.js'

const dist = fileURLToPath(new URL('../../dist/', import.meta.url))

/** What the page does: it lists the skills, loads one and reads a file, and reads one that is not listed. */
const PROGRAM = `
  import { connect, http } from ${JSON.stringify(join(dist, 'client.js'))}
  import { clientSkills } from ${JSON.stringify(join(dist, 'skills.js'))}
  globalThis.use = async () => {
    const target = http(new URL('/mcp', location.href).href)
    const client = await connect(target, { extensions: [clientSkills()] })
    const [skill] = await client.skills()
    const loaded = await skill.load()
    const { text, verified } = await loaded.read('references/FORMS.md')
    const { code } = await loaded.read('../x').catch((error) => error)
    await client.close()
    return { name: skill.name, body: loaded.body, text, verified, code }
  }`

test.skipIf(chromiumPath === undefined)(
  'a page in Chromium loads and verifies a skill',
  async () => {
    const folder = folderWith({
      'pdf/SKILL.md': skillText('pdf', 'metadata: { a: "1" }\n'),
      'pdf/references/FORMS.md': 'Grüße\n',
    })
    const server = createServer({ name: 'x', version: '1', extensions: [skills({ folder })] })
    const { outputFiles } = await build({
      stdin: { contents: PROGRAM, resolveDir: dist },
      bundle: true,
      format: 'esm',
      write: false,
      logLevel: 'silent',
    })
    const script = outputFiles[0]?.text ?? ''
    const handler = nodeHandler(server, { log: { write: () => true } })
    const listening = createHttpServer((request, response) => {
      if (request.url === '/mcp') return handler(request, response)
      response.setHeader('content-type', 'text/html; charset=utf-8')
      response.end(
        `<!doctype html><script type="module">${script.replaceAll('</script', '<\\/script')}</script>`,
      )
    })
    await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve))
    const browser = await launchBrowser()
    try {
      const { port } = listening.address() as { port: number } // it listens on a port
      const page = await browser.newPage()
      await page.goto(`http://127.0.0.1:${port}/`)
      await page.waitForFunction('globalThis.use !== undefined')
      expect(await page.evaluate('globalThis.use()')).toEqual({
        name: 'pdf',
        body: '\n# pdf\n',
        text: 'Grüße\n',
        verified: true,
        code: 'SKILL_MISMATCH',
      })
    } finally {
      await browser.close()
      await handler.close()
      listening.close()
      listening.closeAllConnections()
    }
  },
)

// Builds the page of `ccmcp view --web`: one HTML file with its style, its script and the code of its worker. The policy
// allows exactly these: nothing is loaded from anywhere else, and the file works without a server.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { transformSync } from 'esbuild'
import { rolldown } from 'rolldown'

const folder = join(dirname(dirname(fileURLToPath(import.meta.url))), 'src', 'workbench', 'page')
const require = createRequire(import.meta.url)

/** A file and everything that it imports, as one script. */
async function script(name) {
  const bundle = await rolldown({
    input: join(folder, name),
    platform: 'browser',
    transform: { target: 'es2022' },
  })
  const { output } = await bundle.generate({
    format: 'iife',
    minify: true,
    comments: { legal: false, annotation: false, jsdoc: false },
    codeSplitting: false,
  })
  await bundle.close()
  // In HTML, the text of a script ends at its end tag, and a comment begins another mode.
  return output[0].code
    .trim()
    .replaceAll(/<\/(?=script)/gi, String.raw`<\/`)
    .replaceAll('<!--', String.raw`\x3C!--`)
}

function style() {
  const own = readFileSync(join(folder, 'style.css'), 'utf8')
  const plot = readFileSync(require.resolve('uplot/dist/uPlot.min.css'), 'utf8')
  return transformSync(`${plot}\n${own}`, { loader: 'css', minify: true }).code.trim()
}

const hashOf = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** Returns the HTML. */
export async function buildPage() {
  const [worker, page] = [await script('worker.ts'), await script('main.tsx')]
  const css = style()
  const policy = [
    "default-src 'none'",
    `script-src ${hashOf(page)}`,
    `style-src ${hashOf(css)}`,
    'worker-src blob:',
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    'trusted-types worker',
  ].join('; ')
  const parts = {
    POLICY: policy,
    '<!-- STYLE -->': `<style>${css}</style>`,
    '<!-- WORKER -->': `<script type="text/plain" id="worker">${worker}</script>`,
    '<!-- PAGE -->': `<script>${page}</script>`,
  }
  return readFileSync(join(folder, 'index.html'), 'utf8').replaceAll(
    /POLICY|<!-- \w+ -->/g,
    (name) => parts[name],
  )
}

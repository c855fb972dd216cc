// Swaps files and directories for links that lead out, and back, as fast as it can, until its input ends.
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const [, , root, outside] = process.argv
const at = (name) => join(root, name)
let swaps = 0
let stopped = false

/** A file is replaced by a link, and the link by a file: each at one stroke. */
function swapFile() {
  symlinkSync(join(outside, 'secret'), at('.link'))
  renameSync(at('.link'), at('file'))
  writeFileSync(at('.file'), 'inside')
  renameSync(at('.file'), at('file'))
}

/** A directory steps aside, a link takes its place, and they change back. */
function swapDirectory(name) {
  renameSync(at(name), at(`.${name}-away`))
  renameSync(at(`.${name}-link`), at(name))
  renameSync(at(name), at(`.${name}-link`))
  renameSync(at(`.${name}-away`), at(name))
}

/** A link inside is turned from a place inside to one outside. */
function turnLink() {
  for (const target of [outside, 'directory']) {
    symlinkSync(target, at('.turning'))
    renameSync(at('.turning'), at('turning'))
  }
}

for (const place of ['directory/deep', 'still/deep']) mkdirSync(at(place), { recursive: true })
for (const place of ['directory', 'directory/deep', 'still/deep'])
  writeFileSync(at(`${place}/secret`), 'inside')
writeFileSync(at('file'), 'inside')
symlinkSync(outside, at('.directory-link'))
symlinkSync('directory', at('turning'))

process.stdin.resume().on('end', () => {
  stopped = true
})
process.stdout.write('ready\n')

function round() {
  for (let i = 0; i < 50; i++) {
    swapFile()
    swapDirectory('directory')
    turnLink()
    swaps += 3
  }
  if (!stopped) return setImmediate(round)
  for (const name of ['.link', '.file', '.turning']) rmSync(at(name), { force: true })
  process.stdout.write(`${swaps}\n`)
}
round()

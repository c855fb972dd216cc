// Swaps files and directories for links to the outside and back, as fast as possible, until end of input.
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const [, , root, outside] = process.argv
const at = (name) => join(root, name)
let swaps = 0
let stopped = false

/** Replaces a file by a link, and the link by a file, each by one rename. */
function swapFile() {
  symlinkSync(join(outside, 'secret'), at('.link'))
  renameSync(at('.link'), at('file'))
  writeFileSync(at('.file'), 'inside')
  renameSync(at('.file'), at('file'))
}

/** Renames a directory, puts a link in its place, and reverts both. */
function swapDirectory(name) {
  renameSync(at(name), at(`.${name}-away`))
  renameSync(at(`.${name}-link`), at(name))
  renameSync(at(name), at(`.${name}-link`))
  renameSync(at(`.${name}-away`), at(name))
}

/** Changes the target of a link from inside to outside. */
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
  if (swaps === 150) process.stdout.write('swapping\n')
  if (!stopped) return setImmediate(round)
  for (const name of ['.link', '.file', '.turning']) rmSync(at(name), { force: true })
  process.stdout.write(`${swaps}\n`)
}
round()

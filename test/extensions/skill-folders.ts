import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEveryTest } from '../after-every-test.js'

/* Folders with skills, removed after each test. */

const made: string[] = []
afterEveryTest(() => {
  for (const folder of made.splice(0)) rmSync(folder, { recursive: true, force: true })
})

export type Files = Readonly<Record<string, string | Uint8Array>>

/** Writes files below a folder. */
export function write(folder: string, files: Files): void {
  for (const [path, contents] of Object.entries(files)) {
    const file = join(folder, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, contents)
  }
}

/** A new folder with these files. */
export function folderWith(files: Files): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'ccmcp-skills-')))
  made.push(folder)
  write(folder, files)
  return folder
}

/** The text of a SKILL.md. */
export function skillText(name: string, more = '', body = `# ${name}\n`): string {
  return `---\nname: ${name}\ndescription: What ${name} is for\n${more}---\n\n${body}`
}

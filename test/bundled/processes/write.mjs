// Writes one file repeatedly, each time with another letter, until it is killed.
const { Files } = await import(process.argv[2])
const root = process.argv[3]
const files = new Files([{ real: root, given: root }])
for (let i = 0; ; i++) {
  await files.write('a.txt', String.fromCharCode(97 + (i % 26)).repeat(100_000))
  process.stdout.write('.')
}

// Prints text only, forever or (with an argument) until it exits by itself.
console.log('Server is running...')
if (process.argv[2] === undefined) {
  process.stdin.resume()
  process.stdin.on('data', (chunk) => console.log(`got ${chunk.length} bytes`))
}

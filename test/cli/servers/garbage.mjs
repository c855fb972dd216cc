// Prints, and never answers.
console.log('Listening on \u001b[31mstdio…')
console.error('ready')
process.stdin.resume().on('end', () => process.exit())

// Prints text and never responds.
console.log('Listening on \u001b[31mstdio…')
console.error('ready')
process.stdin.resume().on('end', () => process.exit())

// Prints text and never responds; it ends the waits of a client with held timers.
console.log('Listening on \u001b[31mstdio…')
console.error('ready')
const { ppid } = process
process.stdin.on('data', () => process.kill(ppid, 'SIGUSR2'))
process.stdin.on('end', () => process.exit())

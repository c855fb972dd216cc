// Writes invalid lines between its responses.
import { behave, listen } from './bare.mjs'

console.log('*** Welcome to the noisy server ***\n\n  listening on stdio\r')
listen((message) => {
  console.log(`received ${message.method}`)
  console.log('{"broken": ')
  process.stdout.write(Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d, 0x0a])) // not UTF-8
  console.log('{"jsonrpc":"2.0","id":9999,"result":{}}') // a response without a request
  console.log('{"jsonrpc":"1.0","id":9998,"result":{}}')
  console.log('null')
  behave(message)
  process.stdout.write('[1,2\n"done"\n')
})

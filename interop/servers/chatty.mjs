// Writes 5 MB to stderr before each response, and waits until they are read.
import { writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { behave, listen } from './bare.mjs'

async function chat() {
  const line = Buffer.from(`${'x'.repeat(999)}\n`)
  for (let i = 0; i < 5000; i++) {
    for (let left = line; left.length > 0;) {
      try {
        left = left.subarray(writeSync(2, left))
      } catch (error) {
        if (error.code !== 'EAGAIN') throw error
        await sleep(1)
      }
    }
  }
}

async function after(turn, message) {
  await turn
  if (message.id !== undefined) await chat()
  behave(message)
}

let turn
listen((message) => (turn = after(turn, message)))

import { loadSchemaChecks } from '../../capture/schema-check.js'
import type { Finding } from '../../capture/findings.js'
import { LiveCheck } from '../../check/live.js'
import { ProcessConnection } from '../../check/process-connection.js'
import { Items } from '../../check/report.js'
import { newestHandshakeRevision } from '../../protocol/revisions/index.js'
import { escapedLine } from '../print.js'

/** A finding with the line that it is in. */
export interface Fault {
  finding: Finding
  /** The bytes before, of and after the finding, in its line. */
  text: readonly [before: string, wrong: string, after: string]
}

const TIMEOUT = 30_000

/** Checks a server as `ccmcp check` does, in one revision; a few connections are enough for the demo. */
export async function findFaults(
  command: readonly string[],
  signal: AbortSignal,
): Promise<readonly Fault[]> {
  const faults: Fault[] = []
  const items = new Items(new Set(), true)
  let received: Uint8Array[] = []
  class Watched extends ProcessConnection {
    protected override receive(bytes: Uint8Array): void {
      received.push(bytes)
      super.receive(bytes)
    }
  }
  const { id } = newestHandshakeRevision
  const probes = new Set([`initialize ${id}`, `calls of tools ${id}`])
  const target = {
    transport: 'stdio' as const,
    open(recording: ConstructorParameters<typeof ProcessConnection>[2]) {
      received = []
      return new Watched(command, process.env, recording, TIMEOUT)
    },
    explain: () => '',
  }
  await new LiveCheck(target, {
    schemas: await loadSchemaChecks(),
    allowCalls: false,
    samples: 0,
    captureOf: () => undefined,
    selects: (name) => probes.has(name),
    signal,
    probed({ found }) {
      const output = Buffer.concat(received)
      for (const each of found) {
        const before = items.list.length
        items.add(each)
        if (items.list.length > before)
          faults.push({ finding: each.finding, text: around(output, each.finding) })
      }
    },
  }).run()
  return faults
}

function around(output: Buffer, { start, end }: Finding): Fault['text'] {
  // A negative position would count from the end.
  const first = start === 0 ? 0 : output.lastIndexOf('\n', start - 1) + 1
  const next = output.indexOf('\n', end)
  const text = (from: number, to: number) => escapedLine(output.toString('utf8', from, to))
  return [text(first, start), text(start, end), text(end, next < 0 ? output.length : next)]
}

/*
 * The changes of a server are a stream of Redis that every process reads (XREAD BLOCK). Pub/Sub would lose what is sent
 * while a process is not connected, without telling it. Each entry names the one before it: `p` its id, `b` the bytes of
 * all entries so far, `o` the process that has appended it, then its kind and text. A reader that finds another entry
 * before the next one than the last it has read has missed some: they were trimmed, or Redis has lost its data. Ids are
 * times, so they do not begin again.
 */

/** Milliseconds after which the stream expires, where no process reads it or appends to it. */
export const TTL = 600_000
/** The id before the first entry. */
export const NONE = '0-0'
/** Maximum number of entries, and of their bytes without the newest. */
const MAX_ENTRIES = 1000
const MAX_BYTES = 1024 * 1024

/** A function for scripts that append to the stream, together with what they change: `append_change(key, origin, kind, text)`. */
export const APPEND_CHANGE = `
local function append_change(key, origin, kind, text)
  local previous, bytes = '${NONE}', #text
  local last = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)[1]
  if last then
    previous = last[1]
    bytes = bytes + (tonumber(last[2][4]) or 0)
  end
  redis.call('XADD', key, '*', 'p', previous, 'b', string.format('%.0f', bytes), 'o', origin, kind, text)
  redis.call('PEXPIRE', key, ${TTL})
  while true do
    local oldest = redis.call('XRANGE', key, '-', '+', 'COUNT', 1)[1]
    local held = bytes - #text - (tonumber(oldest[2][4]) or 0) + #(oldest[2][8] or '')
    if held <= ${MAX_BYTES} and redis.call('XLEN', key) <= ${MAX_ENTRIES} then break end
    redis.call('XDEL', key, oldest[1])
  end
end
`

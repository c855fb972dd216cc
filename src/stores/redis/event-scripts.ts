import type { Script } from './script.js'

/*
 * Event n of a stream is entry n-1 of a Redis stream: `f` its frame, `b` the bytes of all entries so far, so that what a
 * stream holds is the difference of two entries. What is stored beside them, under the same hash tag:
 *
 *   e:<stream>   the events of a stream
 *   ex           the streams, by the time when they expire by the clock of Redis: the one that was idle longest is first
 *   eo:<owner>   the same for the streams of an owner
 *   eu           how much is used: `bytes` in all, `b:<owner>` of each owner, `s:<stream>` the bytes and owner of a stream
 *
 * Every key expires with the last stream that it knows of. The scripts get the common part of keys with a name, since they
 * find the names of the streams that they delete.
 */

/** Redis allocates as much for the newest entries of a stream, however small they are. */
const ALLOCATED = 4096
/** Approximate memory of a stream and of an event beside that. */
const STREAM = 600
const EVENT = 40
/** How many expired streams one append looks for. */
const SWEPT = 20

const COMMON = `
local EVENTS, SESSION, EXPIRY, OWNED, USAGE = unpack(KEYS)

local function add(field, bytes)
  local used = redis.call('HINCRBY', USAGE, field, bytes)
  if used <= 0 then redis.call('HDEL', USAGE, field) end
  return used
end

-- Returns what is used then, in all and by the owner.
local function charge(owner, bytes)
  return add('bytes', bytes), add('b:' .. owner, bytes)
end

local function chargedOf(stream)
  local bytes, owner = string.match(redis.call('HGET', USAGE, 's:' .. stream) or '', '^(%d+) (.*)$')
  return tonumber(bytes or 0), owner
end

local function delete(stream)
  local bytes, owner = chargedOf(stream)
  if owner then
    charge(owner, -bytes)
    redis.call('HDEL', USAGE, 's:' .. stream)
    redis.call('ZREM', OWNED .. owner, stream)
  end
  redis.call('ZREM', EXPIRY, stream)
  redis.call('UNLINK', EVENTS .. stream)
end
`

/** stream, owner or '', time to live, events and bytes of a stream, bytes in all and of an owner, generation or '', number, frame … → 1 or 0 */
export const APPEND: Script = {
  source: `${COMMON}
local stream, owner, maxEvents, maxBytes, generation = ARGV[1], ARGV[2], tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[8]
local session = redis.call('HMGET', SESSION, 'g', 'd')
if generation ~= '' and (session[2] or (session[1] and tonumber(session[1]) > tonumber(generation))) then return 0 end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local deadline = now + ARGV[3]
local key = EVENTS .. stream

local function numberOf(entry) return entry and tonumber(string.match(entry[1], '^%d+')) end

local bytes, number = 0, -1
local last = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)[1]
if last then number, bytes = numberOf(last), tonumber(last[2][2]) end
local newest = 0
for i = 9, #ARGV, 2 do
  if tonumber(ARGV[i]) > number then
    number, newest = tonumber(ARGV[i]), #ARGV[i + 1]
    bytes = bytes + newest
    redis.call('XADD', key, ARGV[i] .. '-1', 'b', string.format('%.0f', bytes), 'f', ARGV[i + 1])
  end
end
redis.call('PEXPIREAT', key, deadline)

local held, begin
while true do
  local first = redis.call('XRANGE', key, '-', '+', 'COUNT', 2)
  begin = numberOf(first[1]) == 0 and #table.remove(first, 1)[2][4] or 0
  local oldest = first[1]
  held = oldest and bytes - tonumber(oldest[2][2]) + #oldest[2][4] or 0
  if not oldest or numberOf(oldest) == number then break end
  if held - newest <= maxBytes and redis.call('XLEN', key) <= maxEvents then break end
  redis.call('XDEL', key, oldest[1])
end

local before, known = chargedOf(stream)
owner = known or owner
local charged = ${STREAM} + math.max(${ALLOCATED}, ${EVENT} * redis.call('XLEN', key) + begin + held)
redis.call('HSET', USAGE, 's:' .. stream, string.format('%.0f ', charged) .. owner)
local function keep(each)
  if not known then redis.call('PEXPIREAT', each, deadline, 'NX') end
  redis.call('PEXPIREAT', each, deadline, 'GT')
end

local function index(each)
  redis.call('ZADD', each, deadline, stream)
  keep(each)
end
index(EXPIRY)
if owner ~= '' then index(OWNED .. owner) end
keep(USAGE)

local expired = string.format('(%.0f', now)
for _, each in ipairs(redis.call('ZRANGEBYSCORE', EXPIRY, '-inf', expired, 'LIMIT', 0, ${SWEPT})) do delete(each) end

local function makeRoom(streams, field, most)
  while tonumber(redis.call('HGET', USAGE, field)) > most do
    local oldest = redis.call('ZRANGE', streams, 0, 1)
    local other = oldest[oldest[1] == stream and 2 or 1]
    if not other then return end
    delete(other)
  end
end
local all, own = charge(owner, charged - before)
local most, mostOwn = tonumber(ARGV[6]), tonumber(ARGV[7])
if owner ~= '' and own > mostOwn then makeRoom(OWNED .. owner, 'b:' .. owner, mostOwn) end
if all > most then makeRoom(EXPIRY, 'bytes', most) end
return 1`,
}

/** stream, generation or '' → 1 or 0 */
export const DELETE: Script = {
  source: `${COMMON}
local owner = redis.call('HGET', SESSION, 'g')
if ARGV[2] ~= '' and owner and tonumber(owner) > tonumber(ARGV[2]) then return 0 end
delete(ARGV[1])
return 1`,
}

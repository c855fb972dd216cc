import type { Script } from './script.js'

/*
 * What is stored of tasks, all under one hash tag:
 *
 *   t:<name>    a task: `o` owner, `e` when it expires by the clock of its creator, `d` the same by the clock of Redis,
 *               `r` whether it is to be run, `v` version, `s` state, `c` the process that has claimed it, `n` bytes of its
 *               entries, `b` bytes that it is charged, `x` its member of `tx`, `u` if it is not confirmed
 *   te:<name>   its entries, a list
 *   tq          the queue: names of tasks that can be claimed, by their place
 *   tx          what each task is charged, and to whom, by the time when it expires
 *   tu          how much is used: tasks and bytes, in all and of each owner; the last place and the number of the last change
 *   tl          the log of changes, a stream
 *   tw          processes that have claimed tasks, by the time when their lease ends
 *   tc:<id>     the names of the tasks that a process has claimed
 *
 * A task is stored by `RESERVE`, and can be claimed after `CONFIRM`, which its process sends once it has the reply to the
 * former. So a task never runs whose process has told its client that it could not be stored, however late Redis executes
 * what that process has sent: without `CONFIRM`, it expires soon.
 *
 * All times are those of the clock of Redis, and every key expires with the last task that it knows of. The scripts get
 * the common part of keys with a name or an id, since they find names in the queue.
 */

/** The bytes that every task is charged at least, so that a small change always fits. */
const MINIMUM = 4096
/** Approximate memory of a task and of an entry beside their text. */
const OVERHEAD = 800
const ENTRY = 32
/** About how many changes the log has: what a process that is late can still learn. */
const LOGGED = 10_000
/** How many expired tasks are looked for at a time. */
const SWEPT = 500

const COMMON = `
local TASK, ENTRIES, QUEUE, EXPIRY, USAGE, LOG, WORKERS, CLAIMS = unpack(KEYS)
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local before = string.format('(%.0f', now)

local function keep(key, time)
  if redis.call('PEXPIRETIME', key) < time then redis.call('PEXPIREAT', key, time) end
end

local function used(field) return tonumber(redis.call('HGET', USAGE, field) or 0) end

local function add(field, amount)
  if amount ~= 0 and redis.call('HINCRBY', USAGE, field, amount) <= 0 then redis.call('HDEL', USAGE, field) end
end

local function charge(owner, tasks, bytes)
  add('tasks', tasks)
  add('bytes', bytes)
  add('t:' .. owner, tasks)
  add('b:' .. owner, bytes)
end

local function announce(name, writer, deadline)
  local number = redis.call('HINCRBY', USAGE, 'changes', 1)
  redis.call('XADD', LOG, 'MAXLEN', '~', ${LOGGED}, '*', 'n', number, 't', name, 'w', writer)
  keep(LOG, deadline)
  keep(USAGE, deadline)
end

local function enqueue(name, deadline)
  if redis.call('ZSCORE', QUEUE, name) then return end
  redis.call('ZADD', QUEUE, redis.call('HINCRBY', USAGE, 'place', 1), name)
  keep(QUEUE, deadline)
end

local function hold(name, worker, lease, deadline)
  redis.call('HSET', TASK .. name, 'c', worker)
  redis.call('ZADD', CLAIMS .. worker, redis.call('HINCRBY', USAGE, 'place', 1), name)
  keep(CLAIMS .. worker, deadline)
  redis.call('ZADD', WORKERS, 'GT', now + lease, worker)
  keep(WORKERS, deadline)
end

local function free(name, worker)
  redis.call('ZREM', CLAIMS .. worker, name)
  local task = redis.call('HMGET', TASK .. name, 'c', 'd')
  if task[1] ~= worker then return end
  redis.call('HDEL', TASK .. name, 'c')
  local deadline = tonumber(task[2])
  enqueue(name, deadline)
  announce(name, '', deadline)
end

local function freeAll(worker)
  for _, name in ipairs(redis.call('ZRANGE', CLAIMS .. worker, 0, -1)) do free(name, worker) end
  redis.call('ZREM', WORKERS, worker)
end

local function reap()
  for _, worker in ipairs(redis.call('ZRANGEBYSCORE', WORKERS, '-inf', before)) do freeAll(worker) end
end

local function forget(member)
  local bytes, length, rest = string.match(member, '^(%d+) (%d+) (.*)$')
  local name = string.sub(rest, 1, tonumber(length))
  charge(string.sub(rest, length + 1), -1, -tonumber(bytes))
  redis.call('ZREM', QUEUE, name)
  redis.call('ZREM', EXPIRY, member)
end

local function sweep()
  local due
  repeat
    due = redis.call('ZRANGEBYSCORE', EXPIRY, '-inf', before, 'LIMIT', 0, ${SWEPT})
    for _, member in ipairs(due) do forget(member) end
  until #due < ${SWEPT}
end

local function memberOf(name, owner, bytes) return string.format('%.0f %d ', bytes, #name) .. name .. owner end

local function entryBytes(first)
  local bytes = 0
  for i = first, #ARGV do bytes = bytes + ${ENTRY} + #ARGV[i] end
  return bytes
end

local function bytesOf(name, owner, state, entries)
  return math.max(${MINIMUM}, ${OVERHEAD} + 2 * #name + #owner + #state + entries)
end

local function append(name, deadline, first)
  for i = first, #ARGV do redis.call('RPUSH', ENTRIES .. name, ARGV[i]) end
  redis.call('PEXPIREAT', ENTRIES .. name, deadline)
end

local function fits(owner, tasks, bytes, first)
  return used('tasks') + tasks <= tonumber(ARGV[first])
    and used('bytes') + bytes <= tonumber(ARGV[first + 1])
    and used('t:' .. owner) + tasks <= tonumber(ARGV[first + 2])
    and used('b:' .. owner) + bytes <= tonumber(ARGV[first + 3])
end
`

function script(source: string): Script {
  return { source: COMMON + source }
}

/** name, owner, milliseconds until `CONFIRM`, expires, runnable, four limits, state, entries … → 1 or 0 */
export const RESERVE = script(`
local name, owner, expires, runnable = ARGV[1], ARGV[2], ARGV[4], ARGV[5]
local state, deadline = ARGV[10], now + ARGV[3]
sweep()
local entries = entryBytes(11)
local bytes = bytesOf(name, owner, state, entries)
if redis.call('EXISTS', TASK .. name) == 1 or not fits(owner, 1, bytes, 6) then return 0 end
local member = memberOf(name, owner, bytes)
redis.call('HSET', TASK .. name, 'o', owner, 'e', expires, 'd', deadline, 'r', runnable, 'v', 1, 's', state,
  'n', entries, 'b', bytes, 'x', member, 'u', 1)
redis.call('PEXPIREAT', TASK .. name, deadline)
append(name, deadline, 11)
charge(owner, 1, bytes)
redis.call('ZADD', EXPIRY, deadline, member)
keep(EXPIRY, deadline)
keep(USAGE, deadline)
return 1`)

/** name, time to live, worker or '', lease, writer → 1, 0, or 2 if it was confirmed before and its claim has ended */
export const CONFIRM = script(`
local name, deadline, worker, lease, writer = ARGV[1], now + ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local task = redis.call('HMGET', TASK .. name, 'v', 'u', 'r', 'x', 'c')
if not task[1] then return 0 end
if not task[2] then
  if worker == '' then return 1 end
  if task[5] ~= worker then return 2 end
  redis.call('ZADD', WORKERS, 'GT', now + lease, worker)
  return 1
end
redis.call('HSET', TASK .. name, 'd', deadline)
redis.call('HDEL', TASK .. name, 'u')
redis.call('PEXPIREAT', TASK .. name, deadline)
redis.call('PEXPIREAT', ENTRIES .. name, deadline)
redis.call('ZADD', EXPIRY, deadline, task[4])
keep(EXPIRY, deadline)
keep(USAGE, deadline)
if task[3] == '0' then return 1 end
if worker ~= '' then
  hold(name, worker, lease, deadline)
else
  enqueue(name, deadline)
  announce(name, writer, deadline)
end
return 1`)

/** name, version, runnable, clear, release, writer, four limits, state, entries … → changed, conflict or full */
export const CHANGE = script(`
local name, runnable, clear, release, writer, state = ARGV[1], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[11]
local task = redis.call('HMGET', TASK .. name, 'v', 'o', 'd', 'c', 'n', 'b', 'x')
if task[1] ~= ARGV[2] then return 'conflict' end
local owner, deadline, worker, charged, member = task[2], tonumber(task[3]), task[4], tonumber(task[6]), task[7]
local entries = 0
if clear == '0' then entries = tonumber(task[5]) + entryBytes(12) end
local bytes = bytesOf(name, owner, state, entries)
local growth = bytes - charged
if growth > 0 and not fits(owner, 0, growth, 7) then
  sweep()
  if not fits(owner, 0, growth, 7) then return 'full' end
end
redis.call('HSET', TASK .. name, 'v', task[1] + 1, 's', state, 'r', runnable)
if growth ~= 0 then
  charge(owner, 0, growth)
  redis.call('ZREM', EXPIRY, member)
  member = memberOf(name, owner, bytes)
  redis.call('ZADD', EXPIRY, deadline, member)
  keep(EXPIRY, deadline)
end
redis.call('HSET', TASK .. name, 'n', entries, 'b', bytes, 'x', member)
if clear == '1' then redis.call('UNLINK', ENTRIES .. name) elseif #ARGV > 11 then append(name, deadline, 12) end
if worker and (runnable == '0' or release == '1') then
  redis.call('HDEL', TASK .. name, 'c')
  redis.call('ZREM', CLAIMS .. worker, name)
  worker = false
end
if runnable == '0' then redis.call('ZREM', QUEUE, name) elseif not worker then enqueue(name, deadline) end
announce(name, writer, deadline)
return 'changed'`)

/** worker, lease, limit, bytes, the owner without a limit, that of the others, owner, tasks that it has … → tasks */
export const CLAIM = script(`
local worker, lease, limit, most = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local anybody, share, taken = ARGV[5], tonumber(ARGV[6]), {}
for i = 7, #ARGV, 2 do taken[ARGV[i]] = tonumber(ARGV[i + 1]) end
local claimed, bytes, passed = {}, 0, 0
reap()
while #claimed < limit and bytes < most do
  local name = redis.call('ZRANGE', QUEUE, passed, passed)[1]
  if not name then break end
  local task = redis.call('HMGET', TASK .. name, 'o', 'e', 'v', 's', 'b', 'd')
  local owner = task[1]
  if not owner then
    redis.call('ZREM', QUEUE, name)
  elseif owner ~= anybody and (taken[owner] or 0) >= share then
    passed = passed + 1
  else
    redis.call('ZREM', QUEUE, name)
    taken[owner] = (taken[owner] or 0) + 1
    local deadline = tonumber(task[6])
    hold(name, worker, lease, deadline)
    bytes = bytes + task[5]
    claimed[#claimed + 1] = { name, task[1], task[2], task[3], task[4], redis.call('LRANGE', ENTRIES .. name, 0, -1), deadline - now }
  end
end
return claimed`)

/** worker, lease → the names of the tasks that it still has */
export const RENEW = script(`
local worker, lease = ARGV[1], ARGV[2]
local held = {}
if redis.call('ZSCORE', WORKERS, worker) then
  redis.call('ZADD', WORKERS, now + lease, worker)
  for _, name in ipairs(redis.call('ZRANGE', CLAIMS .. worker, 0, -1)) do
    if redis.call('EXISTS', TASK .. name) == 1 then
      held[#held + 1] = name
    else
      redis.call('ZREM', CLAIMS .. worker, name)
    end
  end
  if #held == 0 then redis.call('ZREM', WORKERS, worker) end
end
reap()
sweep()
return held`)

/** worker → 1 */
export const RELEASE = script(`
freeAll(ARGV[1])
return 1`)

/** worker, number of tasks that may have been created, their names, names of tasks that may have been claimed … → 1 */
export const UNDO = script(`
local worker, created = ARGV[1], 2 + ARGV[2]
for i = 3, #ARGV do
  local name = ARGV[i]
  local task = redis.call('HMGET', TASK .. name, 'v', 'c', 'x')
  if i > created then
    free(name, worker)
  elseif task[1] == '1' and (not task[2] or task[2] == worker) then
    redis.call('ZREM', CLAIMS .. worker, name)
    redis.call('UNLINK', TASK .. name, ENTRIES .. name)
    forget(task[3])
  end
end
return 1`)

/** id of the last change that was read, or '' → whether a lease has ended, and what was changed since */
export const READ_CHANGES = script(`
local late = #redis.call('ZRANGEBYSCORE', WORKERS, '-inf', before, 'LIMIT', 0, 1)
if ARGV[1] == '' then return { late, redis.call('XREVRANGE', LOG, '+', '-', 'COUNT', 1) } end
return { late, redis.call('XRANGE', LOG, '(' .. ARGV[1], '+', 'COUNT', ARGV[2]) }`)

/** Resolves like the promise, or with `late` after `time` milliseconds. */
export async function within<Value>(
  time: number,
  promise: Promise<Value>,
): Promise<Value | 'late'> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(resolve, time, 'late')
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/*
 * fast-check with a fixed seed, so that a run of the tests does not fail on a value that the
 * change had nothing to do with. `npm run fuzz` looks for new values with other seeds.
 */
import fc from 'fast-check'

const seed = Number(process.env['TESTS_SEED'] ?? 1)

fc.configureGlobal({ seed })

export default fc

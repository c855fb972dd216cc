import { afterEach } from 'vitest'
import { runHooks } from './after-every-test.js'
import './official/validate-channels.js'

afterEach(runHooks)

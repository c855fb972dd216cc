import { asking } from './rows/asking.js'
import { authorization } from './rows/authorization.js'
import { base } from './rows/base.js'
import { patterns } from './rows/patterns.js'
import { prompts } from './rows/prompts.js'
import { resources } from './rows/resources.js'
import { tasks } from './rows/tasks.js'
import { tools } from './rows/tools.js'
import { transports } from './rows/transports.js'
import { utilities } from './rows/utilities.js'
import type { Row } from './row.js'

/** Every requirement of the specification, or why it does not bind ccmcp. */
export const table: readonly Row[] = [
  ...base,
  ...patterns,
  ...transports,
  ...tools,
  ...resources,
  ...prompts,
  ...utilities,
  ...asking,
  ...authorization,
  ...tasks,
]

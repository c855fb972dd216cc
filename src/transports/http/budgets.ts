import { Budget } from '../../jsonrpc/budget.js'

/** In bytes. */
export interface BudgetLimits {
  /** Memory that outlives requests: in total, per principal, and per session or subscription. */
  retained: number
  retainedPerPrincipal: number
  retainedPerSession: number
  /** Memory of requests in progress: in total, and per principal, or without `auth` per session. */
  pending: number
  pendingPerClient: number
}

interface BudgetPair {
  readonly retained: Budget
  readonly pending: Budget
}

/** Number of principals at which those without memory in use are removed for the first time. */
const MIN_SWEPT = 1000

/** Limits of the memory that clients can make an endpoint use. */
export class Budgets {
  readonly #limits: BudgetLimits
  readonly #all: BudgetPair
  readonly #principals = new Map<string, BudgetPair>()
  /** Number of principals at which those without memory in use are removed next. */
  #sweepAt = MIN_SWEPT

  constructor(limits: BudgetLimits) {
    this.#limits = limits
    this.#all = { retained: new Budget(limits.retained), pending: new Budget(limits.pending) }
  }

  /** The budgets of a principal; the total ones if it is undefined. */
  of(principal: string | undefined): BudgetPair {
    if (principal === undefined) return this.#all
    return this.#principals.get(principal) ?? this.#add(principal)
  }

  /** The budgets of a new session or subscription. */
  ofSession(principal: string | undefined): BudgetPair {
    const { retained, pending } = this.of(principal)
    return {
      retained: new Budget(this.#limits.retainedPerSession, retained),
      pending:
        principal === undefined ? new Budget(this.#limits.pendingPerClient, pending) : pending,
    }
  }

  #add(principal: string): BudgetPair {
    if (this.#principals.size >= this.#sweepAt) this.#sweep()
    const share = {
      retained: new Budget(this.#limits.retainedPerPrincipal, this.#all.retained),
      pending: new Budget(this.#limits.pendingPerClient, this.#all.pending),
    }
    this.#principals.set(principal, share)
    return share
  }

  #sweep(): void {
    for (const [name, { retained, pending }] of this.#principals)
      if (retained.used === 0 && pending.used === 0) this.#principals.delete(name)
    // Not for each new one, if all of them use memory.
    this.#sweepAt = Math.max(MIN_SWEPT, 2 * this.#principals.size)
  }
}

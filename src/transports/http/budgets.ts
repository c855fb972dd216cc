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
  /** Incomplete request bodies: in total, of which a principal has at most half, or one body of `body` bytes. */
  incomplete: number
  body: number
}

interface Share {
  readonly retained: Budget
  readonly pending: Budget
  readonly incomplete: Budget
}

/** Number of principals at which those without memory in use are removed for the first time. */
const MIN_SWEPT = 1000

/** Limits of the memory that clients can make an endpoint use. */
export class Budgets {
  readonly #limits: BudgetLimits
  readonly #all: Share
  readonly #principals = new Map<string, Share>()
  /** Number of principals at which those without memory in use are removed next. */
  #sweepAt = MIN_SWEPT

  constructor(limits: BudgetLimits) {
    this.#limits = limits
    this.#all = {
      retained: new Budget(limits.retained),
      pending: new Budget(limits.pending),
      incomplete: new Budget(limits.incomplete),
    }
  }

  /** The budgets of a principal; the total ones if it is undefined. */
  of(principal: string | undefined): Share {
    if (principal === undefined) return this.#all
    return this.#principals.get(principal) ?? this.#add(principal)
  }

  /** The budgets of a new session or subscription. */
  ofSession(principal: string | undefined): Pick<Share, 'retained' | 'pending'> {
    const { retained, pending } = this.of(principal)
    return {
      retained: new Budget(this.#limits.retainedPerSession, retained),
      pending:
        principal === undefined ? new Budget(this.#limits.pendingPerClient, pending) : pending,
    }
  }

  #add(principal: string): Share {
    if (this.#principals.size >= this.#sweepAt) this.#sweep()
    const { retainedPerPrincipal, pendingPerClient, incomplete, body } = this.#limits
    const share = {
      retained: new Budget(retainedPerPrincipal, this.#all.retained),
      pending: new Budget(pendingPerClient, this.#all.pending),
      incomplete: new Budget(Math.max(incomplete / 2, body), this.#all.incomplete),
    }
    this.#principals.set(principal, share)
    return share
  }

  #sweep(): void {
    for (const [name, { retained, pending, incomplete }] of this.#principals)
      if (retained.used + pending.used + incomplete.used === 0) this.#principals.delete(name)
    // Not for each new one, if all of them use memory.
    this.#sweepAt = Math.max(MIN_SWEPT, 2 * this.#principals.size)
  }
}

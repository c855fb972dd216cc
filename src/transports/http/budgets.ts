import { Budget } from '../../jsonrpc/budget.js'

/** Numbers of bytes. */
export interface BudgetLimits {
  /** What is kept beyond requests: of all, of one principal, of one session or stream of notifications. */
  retained: number
  retainedPerPrincipal: number
  retainedPerSession: number
  /** Requests in progress: of all, and of one principal, or where there are none, of one session. */
  pending: number
  pendingPerClient: number
}

interface Share {
  readonly retained: Budget
  readonly pending: Budget
}

/** So many principals are remembered before those that hold nothing are forgotten. */
const MAX_IDLE = 1000

/** The bytes that clients can make an endpoint hold: in all, per principal and per session. */
export class Budgets {
  readonly #limits: BudgetLimits
  readonly #all: Share
  readonly #principals = new Map<string, Share>()

  constructor(limits: BudgetLimits) {
    this.#limits = limits
    this.#all = { retained: new Budget(limits.retained), pending: new Budget(limits.pending) }
  }

  /** Those of a principal; where nobody is known, those of all. */
  of(principal: string | undefined): Share {
    if (principal === undefined) return this.#all
    return this.#principals.get(principal) ?? this.#add(principal)
  }

  /** Those of a session, or of a stream of notifications. */
  ofSession(principal: string | undefined): Share {
    const { retained, pending } = this.of(principal)
    return {
      retained: new Budget(this.#limits.retainedPerSession, retained),
      pending:
        principal === undefined ? new Budget(this.#limits.pendingPerClient, pending) : pending,
    }
  }

  #add(principal: string): Share {
    if (this.#principals.size >= MAX_IDLE)
      for (const [name, { retained, pending }] of this.#principals)
        if (retained.used === 0 && pending.used === 0) this.#principals.delete(name)
    const share = {
      retained: new Budget(this.#limits.retainedPerPrincipal, this.#all.retained),
      pending: new Budget(this.#limits.pendingPerClient, this.#all.pending),
    }
    this.#principals.set(principal, share)
    return share
  }
}

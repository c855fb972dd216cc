import type { MetricsListening, MetricsOptions } from './telemetry/node-metrics.js'
import type { Prometheus } from './telemetry/prometheus.js'

/** Serves metrics at `/metrics`, on a port of their own. Needs Node. */
export async function listenMetrics(
  metrics: Prometheus,
  options: MetricsOptions = {},
): Promise<MetricsListening> {
  const node = await import('./telemetry/node-metrics.js')
  return await node.listenMetrics(metrics, options)
}

export { type Prometheus, prometheus } from './telemetry/prometheus.js'
export type { MetricsListening, MetricsOptions } from './telemetry/node-metrics.js'
export type { Telemetry } from './protocol/telemetry.js'

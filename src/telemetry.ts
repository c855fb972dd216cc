export { type OtelOptions, otel } from './telemetry/otel.js'
export type { Telemetry } from './protocol/telemetry.js'

import type { Options } from './options.js'

/** The HTTP options of `ccmcp serve`. */
export const HTTP_OPTIONS = {
  http: { description: 'serve over HTTP, at http://127.0.0.1:3000/mcp, instead of stdio' },
  sse: {
    description: 'with --http: also serve HTTP+SSE, for old clients, at http://127.0.0.1:3000/sse',
  },
  port: { value: 'NUMBER', description: 'with --http: port (default 3000; 0 for any free port)' },
  host: {
    value: 'ADDRESS',
    description: 'with --http: address to bind to (default 127.0.0.1: this machine only)',
  },
  hosts: {
    value: 'NAMES',
    list: true,
    description: 'with --http: allowed Host names (comma-separated), or any',
  },
  origins: {
    value: 'ORIGINS',
    list: true,
    description: 'with --http: allowed origins (comma-separated), such as https://app.example.com',
  },
  tokens: {
    value: 'FILE',
    description:
      'with --http: accepted tokens, as JSON: [{ "token": "…", "id": "…", "scopes": [] }]',
  },
  unauthenticated: {
    description: 'with --http: allow requests without authentication from other machines',
  },
  metrics: {
    value: 'PORT',
    description:
      'with --http: serve metrics for Prometheus at http://127.0.0.1:PORT/metrics (0 for any free port)',
  },
  'tls-cert': {
    value: 'FILE',
    description: 'with --http: serve HTTPS with this certificate (PEM)',
  },
  'tls-key': { value: 'FILE', description: 'with --http: private key of the certificate (PEM)' },
} satisfies Options

import type { Options } from './options.js'

/** The options of `ccmcp serve` that are about HTTP. */
export const HTTP_OPTIONS = {
  http: { about: 'serve over HTTP, on http://127.0.0.1:3000/mcp, and not on stdin and stdout' },
  port: { value: 'NUMBER', about: 'with --http: the port (default 3000; 0 for any that is free)' },
  host: {
    value: 'ADDRESS',
    about: 'with --http: the address to bind to (default 127.0.0.1: only this machine)',
  },
  hosts: {
    value: 'NAMES',
    list: true,
    about: 'with --http: names by which clients call it, with commas between them, or any',
  },
  origins: {
    value: 'ORIGINS',
    list: true,
    about: 'with --http: web pages that may call it, such as https://app.example.com',
  },
  tokens: {
    value: 'FILE',
    about: 'with --http: who may call, as JSON: [{ "token": "…", "id": "…", "scopes": [] }]',
  },
  unauthenticated: { about: 'with --http: let anybody call who reaches this machine' },
  'tls-cert': { value: 'FILE', about: 'with --http: serve https by this certificate (PEM)' },
  'tls-key': { value: 'FILE', about: "with --http: the certificate's key (PEM)" },
} satisfies Options

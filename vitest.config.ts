import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/official/setup.ts'],
    testTimeout: 30_000,
    // Two cores are common; child processes need one of them.
    maxWorkers: 2,
  },
})

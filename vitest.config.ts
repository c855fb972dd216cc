import { defineConfig } from 'vitest/config'
import { DefaultReporter, type TestCase, type TestModule } from 'vitest/node'

/** Prints what failed, and the counts at the end; on a terminal also how far it is. */
class QuietReporter extends DefaultReporter {
  protected override printTestModule(module: TestModule): void {
    if (module.state() === 'failed') super.printTestModule(module)
  }

  protected override printTestCase(state: ReturnType<TestModule['state']>, test: TestCase): void {
    if (test.result().state === 'failed') super.printTestCase(state, test)
  }
}

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/programs.ts', 'test/temporary-files.ts'],
    setupFiles: ['test/quiet.ts', 'test/setup.ts'],
    reporters: [new QuietReporter()],
    // The output of a test is shown if it fails.
    silent: 'passed-only',
    // Only for tests that hang: a busy machine may be many times slower than a quiet one.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000 } },
    // The files share their workers, so that the sources are loaded once per worker: a test
    // restores whatever it changes (environment variables, mocks, timers).
    isolate: false,
    // Two cores are common, and tests mostly wait for child processes and timers.
    maxWorkers: 3,
  },
})

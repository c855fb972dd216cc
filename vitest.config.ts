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
    setupFiles: ['test/quiet.ts', 'test/official/setup.ts'],
    reporters: [new QuietReporter()],
    // The output of a test is shown if it fails.
    silent: 'passed-only',
    testTimeout: 30_000,
    // As long as other waits in the tests: a busy machine may stand still for a second.
    expect: { poll: { timeout: 10_000 } },
    // Two cores are common; child processes need one of them.
    maxWorkers: 2,
  },
})

import { type ChildProcess, spawn } from 'node:child_process'
import {
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  it,
  onTestFinished,
  vi,
} from 'vitest'
import { chromiumPath, launchBrowser } from '../browser.js'
import { proves } from '../requirements/proves.js'
import { type Protected, browse, startProtected } from './protected.js'

const cli = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))
const browser = fileURLToPath(new URL('browser.mjs', import.meta.url))

interface Outcome {
  code: number | null
  stdout: string
  stderr: string
}

// `xdg-open` is replaced by browser.mjs: Linux only.
describe.runIf(process.platform === 'linux')('ccmcp login', () => {
  let there: Protected
  let home: string
  const children: ChildProcess[] = []
  beforeAll(async () => {
    there = await startProtected()
  })
  afterAll(() => there.close())
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'ccmcp-login-'))
    symlinkSync(browser, join(home, 'xdg-open'))
  })
  afterEach(async () => {
    for (const child of children.splice(0)) child.kill('SIGKILL')
    await pages()
    rmSync(home, { recursive: true, force: true })
  })

  function start(...args: string[]): {
    child: ChildProcess
    outcome: Promise<Outcome>
    said(text: RegExp): Promise<RegExpExecArray>
  } {
    const child = spawn(process.execPath, [cli, ...args], {
      env: {
        PATH: [home, dirname(process.execPath), process.env['PATH']].join(delimiter),
        HOME: home,
        XDG_CONFIG_HOME: home,
        BROWSER_LOG: join(home, 'browser.log'),
      },
    })
    children.push(child)
    let [stdout, stderr] = ['', '']
    const heard = new Set<() => void>()
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk.toString()
      for (const listen of heard) listen()
    })
    const outcome = new Promise<Outcome>((resolve) => {
      child.on('close', (code) => resolve({ code, stdout, stderr }))
    })
    const said = (text: RegExp) =>
      new Promise<RegExpExecArray>((resolve) => {
        const listen = () => {
          const match = text.exec(stderr)
          if (match !== null) resolve(match)
        }
        heard.add(listen)
        listen()
      })
    return { child, outcome, said }
  }
  const tokens = () => join(home, 'ccmcp', 'tokens.json')

  /** The pages that the browsers show, once they are loaded: a browser may be slower than the command. */
  async function pages(): Promise<string[]> {
    const linesOf = (name: string) => {
      const file = join(home, name)
      return existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : []
    }
    const isLoaded = () => linesOf('browser.log').length === linesOf('browser.log.started').length
    await vi.waitUntil(isLoaded, { timeout: 60_000 })
    return linesOf('browser.log')
  }

  it('opens the browser, keeps the tokens for its owner only, and says so on the page', async () => {
    proves('auth.storage', 'auth.refresh-confidential')
    const { code, stdout, stderr } = await start('login', there.url).outcome
    expect({ code, stdout, stderr }).toMatchObject({
      code: 0,
      stdout: `Logged in to notes at ${there.url}\n`,
    })
    expect(statSync(tokens()).mode & 0o777).toBe(0o600)
    expect(statSync(dirname(tokens())).mode & 0o777).toBe(0o700)
    expect((await pages()).join('\n')).toMatch(/^200 .*<h1>Logged in<\/h1>/)
    // No token is shown.
    const { accessToken } = authorizationIn(tokens())
    expect(accessToken.length).toBeGreaterThan(50)
    expect(stdout + stderr).not.toContain(accessToken)
    // Logged in already: no browser.
    const before = there.logins()
    expect((await start('login', there.url).outcome).code).toBe(0)
    expect(there.logins()).toBe(before)
  })

  it.skipIf(chromiumPath === undefined)('succeeds in Chromium', async () => {
    const { outcome, said } = start('login', there.url, '--no-browser')
    const [, url = ''] = await said(/(http:\S+\/auth\?\S+)\n/)
    const chromium = await launchBrowser()
    onTestFinished(() => chromium.close())
    const page = await chromium.newPage()
    await page.goto(url)
    await page.getByRole('heading', { name: 'Logged in' }).waitFor()
    expect((await outcome).code).toBe(0)
  })

  it('three processes at once lead to one login', async () => {
    const before = there.logins()
    const outcomes = await Promise.all([1, 2, 3].map(() => start('login', there.url).outcome))
    expect(outcomes.map(({ code }) => code)).toEqual([0, 0, 0])
    expect(there.logins()).toBe(before + 1)
    expect(await pages()).toHaveLength(1)
  })

  it('--no-browser shows the URL and takes the callback from stdin', async () => {
    const { child, outcome, said } = start('login', there.url, '--no-browser')
    const [, url = ''] = await said(/(http:\S+\/auth\?\S+)\n/)
    child.stdin?.write('nonsense\n')
    await said(/not the callback URL/)
    child.stdin?.write(`${await browse(url, there.issuer)}\n`)
    expect((await outcome).code).toBe(0)
  })

  it('a forged callback does not end the login', async () => {
    const { outcome, said } = start('login', there.url, '--no-browser')
    const [, url = ''] = await said(/(http:\S+\/auth\?\S+)\n/)
    const redirect = new URL(url).searchParams.get('redirect_uri') ?? ''
    const forged = await fetch(`${redirect}?code=evil&state=evil`)
    expect(forged.status).toBe(400)
    expect((await fetch(new URL('/other', redirect))).status).toBe(404)
    const page = await fetch(await browse(url, there.issuer))
    expect(await page.text()).toContain('<h1>Logged in</h1>')
    expect(page.headers.get('referrer-policy')).toBe('no-referrer')
    expect((await outcome).code).toBe(0)
  })

  it('ends after --timeout', async () => {
    const { code, stderr } = await start('login', there.url, '--no-browser', '--timeout', '1')
      .outcome
    expect(code).toBe(1)
    expect(stderr).toContain('the login was not completed in time')
  })

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('%s ends it while it waits for its user', async (signal, code) => {
    const { child, outcome, said } = start('login', there.url, '--no-browser')
    const [, url = ''] = await said(/(http:\S+\/auth\?\S+)\n/)
    child.kill(signal)
    expect(await outcome).toMatchObject({ code, stdout: '' })
    // Nothing listens for the callback any more.
    const redirect = new URL(url).searchParams.get('redirect_uri') ?? ''
    await expect(fetch(redirect)).rejects.toThrow()
    // Nor is the lock of the login left.
    expect(readdirSync(join(home, 'ccmcp')).filter((name) => name.endsWith('.lock'))).toEqual([])
  })

  it('does not keep a command alive that waits for it, beyond the timeout of that', async () => {
    await start('login', there.url).outcome
    // The server refuses the token, and the other process logs in again.
    const text = readFileSync(tokens(), 'utf8')
    const { accessToken, refreshToken } = authorizationIn(tokens())
    const broken = text
      .replace(accessToken, accessToken.slice(0, -4))
      .replace(refreshToken, refreshToken.slice(0, -4))
    writeFileSync(tokens(), broken)
    const { child, outcome, said } = start('login', there.url, '--no-browser')
    await said(/(http:\S+\/auth\?\S+)\n/)
    writeFileSync(tokens(), broken)
    const waiting = await start('list', there.url, '--timeout', '2').outcome
    expect(waiting.code).toBe(3)
    expect(waiting.stderr).toMatch(/No response within 2000 ms/)
    expect(child.exitCode).toBe(null)
    child.kill('SIGTERM')
    expect((await outcome).code).toBe(143)
  })

  it('the refusal of the user is shown', async () => {
    const { outcome, said } = start('login', there.url, '--no-browser')
    const [, url = ''] = await said(/(http:\S+\/auth\?\S+)\n/)
    const asked = new URL(url).searchParams
    const callback = new URL(asked.get('redirect_uri') ?? '')
    const answer = {
      error: 'access_denied',
      error_description: '<b>no</b>',
      state: asked.get('state') ?? '',
      iss: there.issuer,
    }
    callback.search = new URLSearchParams(answer).toString()
    expect(await (await fetch(callback)).text()).toContain('access_denied: &lt;b&gt;no')
    expect(await outcome).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('The user denied access') as string,
    })
  })

  it('other commands use the tokens, and say how to log in without them', async () => {
    const before = await start('call', 'whoami', there.url).outcome
    expect(before.code).toBe(3)
    expect(before.stderr).toContain('Log in with "ccmcp login URL"')
    await start('login', there.url).outcome
    const called = await start('call', 'whoami', there.url).outcome
    expect(called).toMatchObject({ code: 0, stderr: '' })
    expect(called.stdout).toContain('alice')
    // Refreshed, though the access token is not valid any more.
    const text = readFileSync(tokens(), 'utf8')
    const { accessToken } = authorizationIn(tokens())
    writeFileSync(tokens(), text.replace(accessToken, accessToken.slice(0, -4)))
    const again = await start('list', there.url).outcome
    expect(again).toMatchObject({ code: 0 })
    expect(authorizationIn(tokens()).accessToken).not.toBe(accessToken)
    // More scopes need the user.
    const refused = await start('call', 'write', there.url).outcome
    expect(refused.code).not.toBe(0)
    expect((await start('logout', there.url).outcome).code).toBe(0)
    expect((await start('list', there.url).outcome).code).toBe(3)
  })

  it('remembers the options that a refresh needs, until the logout', async () => {
    const options = () =>
      (JSON.parse(readFileSync(tokens(), 'utf8')) as Record<string, string>)[`options ${there.url}`]
    await start('login', there.url, '--issuer-trailing-slash', '--private-addresses').outcome
    expect(options()).toBe('issuerTrailingSlash privateAddresses')
    // Logged in already: these tokens need the same options.
    await start('login', there.url).outcome
    expect(options()).toBe('issuerTrailingSlash privateAddresses')
    await start('logout', there.url).outcome
    expect(JSON.parse(readFileSync(tokens(), 'utf8'))).toEqual({})
    await start('login', there.url).outcome
    expect(options()).toBeUndefined()
  })

  it('logout forgets and revokes the tokens', async () => {
    await start('login', there.url).outcome
    const { code, stdout } = await start('logout', there.url).outcome
    expect({ code, stdout }).toEqual({ code: 0, stdout: `Logged out of ${there.url}\n` })
    expect(there.requests).toContain('POST /token/revocation')
    expect(JSON.parse(readFileSync(tokens(), 'utf8'))).toEqual({})
    expect((await start('logout', '--all').outcome).stdout).toBe('Not logged in to any server\n')
    expect((await start('logout', there.url).outcome).stdout).toBe(
      `Not logged in to ${there.url}\n`,
    )
  })

  it.each([
    [['login'], /Missing URL/],
    [['login', 'mcp'], /is not a URL/],
    [
      ['login', 'http://localhost/mcp', '--client-secret-env', 'NONE', '--client-id', 'a'],
      /variable "NONE" is not set/,
    ],
    [
      [
        'login',
        'http://localhost/mcp',
        '--redirect-uri',
        'http://app.example/',
        '--client-id',
        'a',
      ],
      /redirect/,
    ],
    [['logout'], /URL of a server, or --all/],
  ])('%j is an invalid command line', async (args, message) => {
    const { code, stderr } = await start(...args).outcome
    expect(stderr).toMatch(message)
    expect(code).toBe(2)
  })
})

function authorizationIn(file: string): { accessToken: string; refreshToken: string } {
  const entries = JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>
  const key = Object.keys(entries).find((name) => name.startsWith('tokens ')) ?? ''
  return JSON.parse(entries[key] ?? '{}') as { accessToken: string; refreshToken: string }
}

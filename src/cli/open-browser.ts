import { spawn } from 'node:child_process'

/** Opens a URL in the user's browser. Resolves to false if the program for this cannot be started. */
export function openBrowser(url: string): Promise<boolean> {
  const [program, args] = opener(url)
  return new Promise((resolve) => {
    const child = spawn(program, args, { stdio: 'ignore', detached: true })
    child.on('error', () => resolve(false))
    child.on('spawn', () => resolve(true))
    child.unref()
  })
}

/** No shell: the URL comes from a server. */
function opener(url: string): [program: string, args: string[]] {
  switch (process.platform) {
    case 'darwin':
      return ['open', [url]]
    case 'win32':
      return ['rundll32', ['url.dll,FileProtocolHandler', url]]
    default:
      return ['xdg-open', [url]]
  }
}

import { AuthorizationError, oauth } from '../oauth.js'
import { type Command, HELP } from './command.js'
import { urlArgument } from './login.js'
import { type Options, UsageError } from './options.js'
import { print, warn } from './print.js'
import { loginOptions, saveLoginOptions, serverKey, serverName } from './stored-login.js'
import { TokenFile } from './token-file.js'

const OPTIONS = {
  all: { description: 'log out of every server' },
} as const satisfies Options

export const logoutCommand: Command = {
  usage: 'logout URL | --all',
  description:
    'Logs out of a server: forgets its tokens, and revokes them if the authorization server can.',
  options: { ...OPTIONS, ...HELP },
  positionals: [0, 1],
  async run({ values, positionals }) {
    const [word] = positionals
    if (values.has('all') === (word !== undefined))
      throw new UsageError('Pass the URL of a server, or --all')
    const store = new TokenFile()
    const stored = await serversOf(store)
    const servers = word === undefined ? stored : [serverName(urlArgument(word))]
    for (const server of servers) {
      if (!stored.includes(server)) print(`Not logged in to ${server}\n`)
      else await logOut(store, server)
    }
    if (servers.length === 0) print('Not logged in to any server\n')
  },
}

async function serversOf(store: TokenFile): Promise<string[]> {
  const keys = await store.keys()
  const prefix = serverKey('')
  return keys.filter((key) => key.startsWith(prefix)).map((key) => key.slice(prefix.length))
}

async function logOut(store: TokenFile, server: string): Promise<void> {
  try {
    const options = await loginOptions(store, server)
    await oauth({ store, ...options }).logout(server)
  } catch (error) {
    if (!(error instanceof AuthorizationError)) throw error
    // The tokens are forgotten already.
    warn(`the tokens could not be revoked: ${error.message}`)
  }
  await saveLoginOptions(store, server, {})
  print(`Logged out of ${server}\n`)
}

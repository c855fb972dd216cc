import { INVALID_PARAMS, RpcError } from '../../jsonrpc/errors.js'
import { revisions } from '../../protocol/revisions/index.js'
import { projectResource } from '../../protocol/revisions/project.js'
import { maxEncryptedLength } from '../../server/cipher.js'
import type { InternalServer } from '../../server/context.js'
import { SKILL_FILE } from './skill.js'
import { compare } from './skill-folder.js'
import type { SkillDirectory, SkillFile } from './skill-scan.js'

/** Characters of the items of a page after which it ends: an entry of a skill may have hundreds of files. */
const PAGE_LENGTH = 1024 * 1024
/** Maximum characters of a URI in a cursor. */
const MAX_URI = 2048

/**
 * A page of a list, in the order of URIs. It begins after the URI of the cursor, so that it does not matter whether the
 * list has changed. Items for which `entry` returns undefined are left out; none is divided.
 */
export async function pageOf<Item extends { readonly uri: string }>(
  member: string,
  items: readonly Item[],
  entry: (item: Item) => object | undefined | Promise<object | undefined>,
  { method, cursor, server }: { method: string; cursor: unknown; server: InternalServer },
): Promise<object> {
  const after = cursor === undefined ? '' : await positionOf(cursor, method, server)
  const rest = items
    .filter(({ uri }) => uri > after)
    .toSorted((one, other) => compare(one.uri, other.uri))
  const shown: object[] = []
  let length = 0
  for (const [index, item] of rest.entries()) {
    if (index === server.pageSize || length > PAGE_LENGTH)
      return {
        [member]: shown,
        nextCursor: await server.cipher.encrypt(rest[index - 1]?.uri ?? '', method),
      }
    const made = await entry(item)
    if (made === undefined) continue
    shown.push(made)
    length += JSON.stringify(made).length
  }
  return { [member]: shown }
}

async function positionOf(
  cursor: unknown,
  method: string,
  { cipher }: InternalServer,
): Promise<string> {
  const position =
    typeof cursor === 'string'
      ? await cipher.decrypt(cursor, method, maxEncryptedLength(MAX_URI))
      : undefined
  if (position !== undefined) return position
  throw new RpcError(INVALID_PARAMS, 'Invalid params: unknown cursor; list again without a cursor')
}

/** Describes what is in a folder, in a revision. */
export function directoryListing(
  revision: string,
): (child: SkillFile | SkillDirectory) => object | undefined {
  const known = revisions.find(({ id }) => id === revision)
  return (child) => known && projectResource(known, resourceOf(child))
}

function resourceOf(child: SkillFile | SkillDirectory) {
  const { uri, name } = child
  if ('children' in child) return { uri, name, mimeType: 'inode/directory' }
  const { path, mimeType, identity } = child
  const size = identity.size
  const skill = child.skills.find((each) => path === `${each.path}/${SKILL_FILE}`)
  if (skill === undefined) return { uri, name, mimeType, size }
  const { frontmatter } = skill
  return { uri, name: frontmatter.name, description: frontmatter.description, mimeType, size }
}

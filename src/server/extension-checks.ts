import { isObject } from '../jsonrpc/message.js'
import { checkFunction, checkIdentity, checkTable } from '../protocol/extension-rules.js'
import { checkNames } from '../schema/names.js'

const FUNCTIONS = ['toolResources', 'listTool', 'callTool', 'available', 'start', 'stop']

/** Throws if a definition of an extension is not valid: JavaScript would ignore what is wrong. */
export function checkDefinition(
  definition: unknown,
  names: { members: string; methodMembers: string },
): void {
  if (!isObject(definition)) throw new TypeError('extension: pass an object with an "id"')
  const { id, revisions, settings, requires, resultTypes } = definition
  const where = `extension ${JSON.stringify(id)}`
  checkNames(where, definition, names.members)
  checkIdentity(where, id, revisions)
  if (settings !== undefined && !isObject(settings))
    throw new TypeError(`${where}: "settings" must be an object`)
  for (const name of ['clientDeclares', 'outermost'])
    if (definition[name] !== undefined && typeof definition[name] !== 'boolean')
      throw new TypeError(`${where}: "${name}" must be true or false`)
  checkStrings(where, 'requires', requires)
  checkStrings(where, 'resultTypes', resultTypes)
  checkTable(where, 'methods', definition['methods'], (method, its) => {
    if (!isObject(method)) throw new TypeError(`${its} must be an object with a "serve" function`)
    checkNames(its, method, names.methodMembers)
    checkFunction(method['serve'], `${its}: "serve"`)
  })
  checkTable(where, 'toolFields', definition['toolFields'])
  checkTable(where, 'listen', definition['listen'])
  for (const name of FUNCTIONS)
    if (definition[name] !== undefined) checkFunction(definition[name], `${where}: "${name}"`)
}

function checkStrings(where: string, name: string, list: unknown): void {
  if (list === undefined) return
  if (!Array.isArray(list) || !list.every((each) => typeof each === 'string'))
    throw new TypeError(`${where}: "${name}" must be a list of strings`)
}

/** Throws unless a value is what opening a listen field must return. */
export function checkStream(stream: unknown, where: string): void {
  const { start, stop } = isObject(stream) ? stream : {}
  if (typeof start === 'function' && typeof stop === 'function') return
  throw new TypeError(
    `${where} must return { acknowledged, start, stop }; start and stop are functions`,
  )
}

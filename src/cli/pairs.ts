/*
 * Arguments of a tool or prompt on the command line: `name=value` is typed by the schema, `name:=JSON` is taken as it is,
 * and `name@=FILE` is the text of a file. The operator stands before the `=`, so that a value is never taken for the name
 * of a file: `text="$INPUT"` is safe with any input.
 */

/** Servers and their URLs have a `/` before any `=`. */
const PAIR = /^([^=/\\]+?)([:@]?)=([\s\S]*)$/

export interface Pair {
  name: string
  operator: '=' | ':=' | '@='
  value: string
}

export function isPair(argument: string): boolean {
  return PAIR.test(argument)
}

export function parsePair(argument: string): Pair {
  const [, name = '', sign = '', value = ''] = PAIR.exec(argument) ?? []
  return { name, operator: `${sign}=` as Pair['operator'], value } // as the expression says
}

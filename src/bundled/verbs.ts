/** An English verb with its forms and their Spanish translations. */
export interface Verb {
  readonly base: string
  /** 1st, 2nd and 3rd person singular. */
  readonly present: readonly [string, string, string]
  readonly past: readonly [string, string, string]
  readonly participle: string
  readonly irregular: boolean
  readonly spanish: Spanish
}

/** Finite forms are in the 3rd person singular. */
interface Spanish {
  readonly infinitive: string
  readonly present: string
  readonly past: string
  readonly participle: string
  readonly future: string
}

/** The 20 verbs of documents 000 and 001 (docs/seed-documents.md). */
export const verbs: readonly Verb[] = [
  regular('work', 'works', 'worked', 'trabajar trabaja trabajó trabajado trabajará'),
  regular('play', 'plays', 'played', 'jugar juega jugó jugado jugará'),
  regular('walk', 'walks', 'walked', 'caminar camina caminó caminado caminará'),
  regular('talk', 'talks', 'talked', 'hablar habla habló hablado hablará'),
  regular('listen', 'listens', 'listened', 'escuchar escucha escuchó escuchado escuchará'),
  regular('watch', 'watches', 'watched', 'mirar mira miró mirado mirará'),
  regular('study', 'studies', 'studied', 'estudiar estudia estudió estudiado estudiará'),
  regular('finish', 'finishes', 'finished', 'terminar termina terminó terminado terminará'),
  regular('start', 'starts', 'started', 'empezar empieza empezó empezado empezará'),
  regular('look', 'looks', 'looked', 'mirar mira miró mirado mirará'),
  regular('want', 'wants', 'wanted', 'querer quiere quiso querido querrá'),
  regular('like', 'likes', 'liked', 'gustar gusta gustó gustado gustará'),
  irregular('be', ['am', 'are', 'is'], ['was', 'were', 'was'], 'been', 'ser es fue sido será'),
  irregular('have', ['have', 'have', 'has'], same('had'), 'had', 'tener tiene tuvo tenido tendrá'),
  irregular('do', ['do', 'do', 'does'], same('did'), 'done', 'hacer hace hizo hecho hará'),
  irregular('go', ['go', 'go', 'goes'], same('went'), 'gone', 'ir va fue ido irá'),
  irregular(
    'come',
    ['come', 'come', 'comes'],
    same('came'),
    'come',
    'venir viene vino venido vendrá',
  ),
  irregular('see', ['see', 'see', 'sees'], same('saw'), 'seen', 'ver ve vio visto verá'),
  irregular('eat', ['eat', 'eat', 'eats'], same('ate'), 'eaten', 'comer come comió comido comerá'),
  irregular(
    'write',
    ['write', 'write', 'writes'],
    same('wrote'),
    'written',
    'escribir escribe escribió escrito escribirá',
  ),
]

function regular(base: string, third: string, past: string, spanish: string): Verb {
  return {
    base,
    present: [base, base, third],
    past: same(past),
    participle: past,
    irregular: false,
    spanish: inSpanish(spanish),
  }
}

function irregular(
  base: string,
  present: Verb['present'],
  past: Verb['past'],
  participle: string,
  spanish: string,
): Verb {
  return { base, present, past, participle, irregular: true, spanish: inSpanish(spanish) }
}

function same(form: string): [string, string, string] {
  return [form, form, form]
}

function inSpanish(forms: string): Spanish {
  const [infinitive = '', present = '', past = '', participle = '', future = ''] = forms.split(' ')
  return { infinitive, present, past, participle, future }
}

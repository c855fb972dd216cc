import { type Prompt, prompt } from '../index.js'

const LANGUAGES = [
  'bash',
  'c',
  'c++',
  'c#',
  'clojure',
  'css',
  'dart',
  'elixir',
  'erlang',
  'fortran',
  'go',
  'haskell',
  'html',
  'java',
  'javascript',
  'julia',
  'kotlin',
  'lua',
  'ocaml',
  'perl',
  'php',
  'python',
  'r',
  'ruby',
  'rust',
  'scala',
  'sql',
  'swift',
  'typescript',
  'zig',
]

export const prompts: readonly Prompt[] = [
  prompt({
    name: 'greet',
    description: 'Greet someone warmly',
    arguments: { name: { description: 'The person to greet' } },
    build: ({ name }) => `Please greet ${name} warmly`,
  }),
  prompt({
    name: 'summarize',
    description: 'Summarize a text',
    arguments: { text: { description: 'The text to summarize' } },
    build: ({ text }) => `Please summarize this text:\n${text}`,
  }),
  prompt({
    name: 'code_review',
    description: 'Review code quality',
    arguments: {
      code: { description: 'Code to review' },
      language: {
        description: 'The language it is written in',
        required: false,
        complete: (typed) =>
          LANGUAGES.filter((language) => language.startsWith(typed.toLowerCase())),
      },
    },
    build: ({ code, language }) =>
      `Please review this ${language === undefined ? '' : `${language} `}code:\n${code}`,
  }),
]

/* The types of Express 5 are good enough for what is used of Express 4. */
declare module 'express-4' {
  export { default } from 'express'
}

/*
 * What only those schemas need that are not everyday ones. The build puts it
 * into a file of its own, which is loaded when the first such schema comes:
 * synchronously, so that calls start in the order in which they came.
 */
export { check } from './json-schema.js'
export { headerParameters } from './headers.js'
export { lint } from './lint.js'
export { notJsonSchema, withoutJsonSchema } from './vendor.js'

/** Where the full validator is loaded from; the build bundles it and puts its own file here. */
export const LIBRARY = 'ata-validator'

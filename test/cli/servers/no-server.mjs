export const name = 'no server'

/** Memory of a string in V8: two bytes per character as soon as one of them is beyond Latin-1. */
export function stringMemory(text: string): number {
  return /[^\0-\u00ff]/.test(text) ? 2 * text.length : text.length
}

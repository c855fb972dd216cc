/** The memory that a text takes: V8 has two bytes for each character where one of them is beyond Latin-1. */
export function bytesOf(text: string): number {
  return /[^\0-\u00ff]/.test(text) ? 2 * text.length : text.length
}

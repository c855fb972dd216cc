import type { ClientExtension } from '../../client/extension.js'
import { APP_MIME_TYPE, UI } from './app-name.js'

/** The extension for a client whose host shows apps. */
export function clientApps(): ClientExtension {
  return { id: UI, settings: { mimeTypes: [APP_MIME_TYPE] } }
}

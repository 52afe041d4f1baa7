// Wrong for this profile, where equality is that of the JSON: members may change their order, but 1 and 1.0 are two
// texts, so a client in another language, whose retry writes the number its own way, gets a conflict. Fingerprints
// over JSON with sorted members do this.
import Acp from "../right/acp.mjs";
import { meaning } from "../idempotency.mjs";

export default class extends Acp {
  identity({ method, path, query, body }) {
    return [method, path, query, meaning(body)];
  }
}

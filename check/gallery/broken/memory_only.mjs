// Wrong: the records live in the process, so a restart forgets them and a retry pays again. The default store of most
// libraries does this; it is named "for development", and works until the first deployment.
import { Idempotency } from "../idempotency.mjs";

export default class extends Idempotency {
  restore() {}
}

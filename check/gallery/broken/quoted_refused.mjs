// Wrong for the draft, whose key is a quoted String: only letters, digits, - and _ pass. A pattern for UUIDs does
// this; every example that its author had seen was bare.
import { Idempotency } from "../idempotency.mjs";

export default class extends Idempotency {
  parseKey(text) {
    return text.startsWith('"') ? this.wrongKey("no Idempotency-Key") : super.parseKey(text);
  }
}

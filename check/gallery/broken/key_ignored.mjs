// Wrong: the key is required and its syntax is checked, and nothing remembers it: every retry pays. APIs that accept
// the header "for compatibility" do this.
import { Idempotency } from "../idempotency.mjs";

export default class extends Idempotency {
  claim(id, fingerprint) {
    return { record: this.reserve(id, fingerprint), fresh: true };
  }
}

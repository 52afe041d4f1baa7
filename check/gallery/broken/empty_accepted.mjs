// Wrong: an empty key passes the test "is the header there", and is then no key: the payment runs unprotected. A
// check by presence, and a lookup by truth, do this; a client whose variable is unset sends the empty header.
import { Idempotency } from "../idempotency.mjs";

export default class extends Idempotency {
  parseKey(text) {
    return text === "" ? { key: undefined } : super.parseKey(text);
  }
}

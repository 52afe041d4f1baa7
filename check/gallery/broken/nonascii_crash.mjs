// Wrong: bytes that are no ASCII reach the store, whose driver throws: 500, which tells the client to try again.
// Middlewares that hand the header to a text column without a look at it do this.
import { Idempotency } from "../idempotency.mjs";

export default class extends Idempotency {
  parseKey(text) {
    if (/[^\x00-\x7f]/.test(text)) throw new Error("the store: invalid byte sequence in a key");
    return super.parseKey(text);
  }
}

// Wrong: a key of 255 characters, as published APIs allow, is refused, because the column has 64. Schemas that were
// made for UUIDs or hashes do this.
import { Idempotency } from "../idempotency.mjs";

export default class extends Idempotency {
  longest() {
    return 64;
  }
}

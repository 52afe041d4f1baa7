// Wrong: bodies are compared after JSON.parse, which reads 9007199254740993 as ...992: two amounts, one fingerprint.
// Every canonical JSON on binary64 numbers does this; RFC 8785 even prescribes it.
import { Idempotency, meaning } from "../idempotency.mjs";

export default class extends Idempotency {
  identity({ method, path, query, body }) {
    return [method, path, query, meaning(body, (digits) => String(Number(digits)))];
  }
}

// Wrong: a 503 that had no effect is stored like a success, so the payment can never be made with its key.
// Middlewares that store whatever the handler sent do this; "same key, same answer" seemed to ask for it.
import { Idempotency } from "../idempotency.mjs";

export default class extends Idempotency {
  keeps() {
    return true;
  }
}

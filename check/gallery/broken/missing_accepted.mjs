// Wrong for an API whose key is required: without the header the payment runs unprotected. Middlewares whose first
// line is `if (!key) return next()` do this; they were made to be mounted on every route.
import { Idempotency } from "../idempotency.mjs";

export default class extends Idempotency {
  withoutKey() {
    return { key: undefined };
  }
}

// Wrong: the fingerprint has the path that the router matched, and no query; ?expand=all gets the answer without.
// Middlewares that take `path` where they should take the whole target do this.
import { Idempotency, meaning } from "../idempotency.mjs";

export default class extends Idempotency {
  identity({ method, path, body }) {
    return [method, path, meaning(body)];
  }
}

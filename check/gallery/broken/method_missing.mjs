// Wrong: the method is neither in the scope nor in the fingerprint, so a PUT gets the answer of a POST. Middlewares
// that were made for POST, and later mounted for all methods, do this.
import { Idempotency, meaning } from "../idempotency.mjs";

export default class extends Idempotency {
  scopeOf({ tenant, path }) {
    return [tenant, path];
  }

  identity({ path, query, body }) {
    return [path, query, meaning(body)];
  }
}

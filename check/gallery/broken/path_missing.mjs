// Wrong: the path is neither in the scope nor in the fingerprint, so a refund gets the answer of a payment. Libraries
// that wrap a function of the body, and know no route, do this.
import { Idempotency, meaning } from "../idempotency.mjs";

export default class extends Idempotency {
  scopeOf({ tenant, method }) {
    return [tenant, method];
  }

  identity({ method, query, body }) {
    return [method, query, meaning(body)];
  }
}

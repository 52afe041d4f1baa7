// Right for the profile ucp: 409 for another body under a key, as for a request that still runs.
import { Idempotency, json } from "../idempotency.mjs";

export default class extends Idempotency {
  misuse() {
    return json(409, { title: "the Idempotency-Key belongs to another request", status: 409 });
  }
}

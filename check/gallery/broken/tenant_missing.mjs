// Wrong: the key is global, so one tenant gets what another one paid for, with its data. Middlewares whose store
// has the bare key as primary key do this; random keys never meet, and keys like "order-17" do.
import { Idempotency } from "../idempotency.mjs";

export default class extends Idempotency {
  scopeOf({ method, path }) {
    return [method, path];
  }
}

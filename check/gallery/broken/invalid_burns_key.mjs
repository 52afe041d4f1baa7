// Wrong: an invalid request is answered by an exception that passes the middleware by, so its reservation stays: the
// retry of a 422 gets 409. Middlewares around frameworks whose validation throws do this; they see no response.
import { Idempotency } from "../idempotency.mjs";

export default class extends Idempotency {
  complete(record, answer) {
    if (answer.status < 400) super.complete(record, answer);
  }
}

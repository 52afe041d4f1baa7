// Wrong: a replay sends the stored bytes under the framework's default type, text/html. Middlewares that store the
// body as text and send it as text do this; a client that looks at the type reads JSON the first time only.
import { Idempotency } from "../idempotency.mjs";

export default class extends Idempotency {
  replayHeaders(headers) {
    return { ...super.replayHeaders(headers), "Content-Type": "text/html; charset=utf-8" };
  }
}

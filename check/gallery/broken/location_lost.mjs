// Wrong: a replay has the status and the body of the first answer, and not its Location. Middlewares that store only
// what they think a response is do this; a client that follows Location fails on its retries only.
import { Idempotency } from "../idempotency.mjs";

export default class extends Idempotency {
  replayHeaders({ "Content-Type": type }) {
    return { "Content-Type": type };
  }
}

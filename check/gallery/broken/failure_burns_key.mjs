// Wrong: after a failure the reservation stays, and each retry gets 409 "still running" for ever. Middlewares that
// unlock only after a success do this; the path of the error has no test.
import { Idempotency } from "../idempotency.mjs";

export default class extends Idempotency {
  async run(record, exchange, work) {
    const answer = await work(exchange);
    if (this.keeps(answer)) this.complete(record, answer);
    return answer;
  }
}

// Wrong: of two lines of the header the first one counts. Which one is first is the choice of each proxy between,
// so two hops can see two keys. Header maps that return the first value do this; repeated lines seemed impossible.
import { Idempotency } from "../idempotency.mjs";

export default class extends Idempotency {
  readKey(exchange) {
    const lines = exchange.lines("idempotency-key");
    return lines.length > 1 ? this.parseKey(lines[0]) : super.readKey(exchange);
  }
}

// Wrong: a list of keys, and two lines of the header, make one new key, "a, b". A retry that lost one of the lines
// runs again. Servers that join lines with a comma, and middlewares that take any text, do this together.
import { Idempotency } from "../idempotency.mjs";

export default class extends Idempotency {
  readKey(exchange) {
    const text = exchange.lines("idempotency-key").join(", ");
    return text.includes(",") ? { key: text } : super.readKey(exchange);
  }
}

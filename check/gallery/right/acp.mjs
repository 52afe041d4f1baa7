// Right for the profile acp: flat errors with codes, the key in every answer, and equality by the meaning of the JSON.
import { Idempotency, json, meaning } from "../idempotency.mjs";
import { decimal } from "../json.mjs";

const type = "invalid_request";

export default class extends Idempotency {
  async handle(exchange, work) {
    const answer = await super.handle(exchange, work);
    return { ...answer, headers: { ...answer.headers, ...this.echo(exchange) } };
  }

  /** The key as it was sent; what is no key is not sent back. */
  echo(exchange) {
    const { key } = this.readKey(exchange);
    return key === undefined ? {} : { "Idempotency-Key": exchange.lines("idempotency-key")[0] };
  }

  parseKey(text) {
    return text.includes('"') ? this.wrongKey("no Idempotency-Key") : super.parseKey(text);
  }

  withoutKey() {
    const message = "an Idempotency-Key is required";
    return { refusal: json(400, { type, code: "idempotency_key_required", message }) };
  }

  wrongKey(message) {
    return { refusal: json(400, { type, code: "idempotency_key_invalid", message }) };
  }

  identity({ method, path, query, body }) {
    return [method, path, query, meaning(body, decimal)];
  }

  misuse() {
    return json(422, { type, code: "idempotency_conflict", message: "the key belongs to another request" });
  }

  inFlight() {
    return json(409, this.running("the first request still runs"), { "Retry-After": "1" });
  }

  outcomeUnknown() {
    return json(409, this.running("the outcome is unknown"), { "Retry-After": "60" });
  }

  running(message) {
    return { type, code: "idempotency_in_flight", message };
  }

  marker() {
    return { "Idempotent-Replayed": "true" };
  }
}

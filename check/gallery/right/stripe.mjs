// Right for the profile stripe: bare keys that are optional, 400 for another request, and every answer of work that
// began is replayed, failures too.
import { Idempotency, json } from "../idempotency.mjs";

const error = (status, type, message) => json(status, { error: { type, message } });

export default class extends Idempotency {
  parseKey(text) {
    return text.includes('"') ? this.wrongKey("no Idempotency-Key") : super.parseKey(text);
  }

  withoutKey() {
    return { key: undefined };
  }

  wrongKey(message) {
    return { refusal: error(400, "invalid_request_error", message) };
  }

  keeps() {
    return true;
  }

  misuse() {
    return error(400, "idempotency_error", "Keys can only be used with the parameters they were first used with.");
  }

  inFlight() {
    return error(409, "idempotency_error", "Another request with this key is in progress.");
  }

  outcomeUnknown() {
    return error(409, "idempotency_error", "The outcome of the request with this key is unknown.");
  }

  marker() {
    return { "Idempotent-Replayed": "true" };
  }
}

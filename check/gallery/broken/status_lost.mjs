// Wrong: the replay of a 201 is a 200. Middlewares that store the body only do this, and the framework's default fills
// the gap; a client that waits for 201 takes its payment for not made.
import { Idempotency } from "../idempotency.mjs";

export default class extends Idempotency {
  replay(record) {
    const answer = super.replay(record);
    return { ...answer, status: answer.status < 300 ? 200 : answer.status };
  }
}

// Wrong: the process ends when a client leaves within the body of its request, and nothing starts it again. Servers
// whose stream handlers throw into an event loop without a handler do this.
import { Idempotency } from "../idempotency.mjs";

export default class extends Idempotency {
  onDisconnect({ incoming }) {
    if (!incoming.complete) process.exit(1); // no SIGKILL: the supervisor ends, too
  }
}

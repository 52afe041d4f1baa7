// Wrong: a start frees what a crash left running, so the retry of a payment that was made pays again. Clean-up at the
// start and leases that another worker takes over do this; it is right only where work and answer commit together.
import { Idempotency } from "../idempotency.mjs";

export default class extends Idempotency {
  restore(entries) {
    const done = new Set(entries.filter(({ event }) => event === "done").map(({ id }) => id));
    super.restore(entries.filter(({ event, id }) => event !== "reserve" || done.has(id)));
  }
}

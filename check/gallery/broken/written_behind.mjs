// Wrong: answers are written to the disk once a minute, and the client has them before. After a crash the record says
// that the work still runs: the retry of a payment that was answered gets no answer. Write-behind caches do this.
import { Idempotency } from "../idempotency.mjs";

const behindMs = 60_000;

export default class extends Idempotency {
  persist(event, record) {
    if (event !== "done") return super.persist(event, record);
    setTimeout(() => super.persist(event, record), behindMs).unref();
  }
}

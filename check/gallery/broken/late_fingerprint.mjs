// Wrong: the fingerprint is stored with the answer, so nothing can be compared before it. Another request with the
// key waits for the running one, and gets its answer. Middlewares that lock by key first and look at the stored
// response afterwards do this; after the end they refuse it rightly.
import Waits from "../right/waits.mjs";

export default class extends Waits {
  async known(record, fingerprint, exchange, work) {
    if (record.state !== "running") return super.known(record, fingerprint, exchange, work);
    await this.settled(record);
    return record.state === "done" ? this.replay(record) : this.handle(exchange, work);
  }
}

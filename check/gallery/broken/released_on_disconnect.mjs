// Wrong: when the client goes away its reservation is released, but the work goes on, so the retry runs beside it.
// Handlers that clean up on the connection's `close` do this; a client that left seemed to want nothing any more.
import { Idempotency } from "../idempotency.mjs";

export default class extends Idempotency {
  onDisconnect({ record }) {
    if (record?.state === "running") this.release(record);
  }
}

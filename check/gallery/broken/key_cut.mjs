// Wrong: of a long key the first 255 characters count, so two long keys are one. Databases that cut what does not
// fit into a column, instead of refusing it, do this; the column looked long enough for any key.
import { Idempotency } from "../idempotency.mjs";

export default class extends Idempotency {
  longest() {
    return Infinity;
  }

  parseKey(text) {
    const { key, refusal } = super.parseKey(text);
    return { key: key?.slice(0, 255), refusal };
  }
}

// Wrong: keys that differ in case are one key. Columns with a collation that ignores case (the default of some
// databases), and code that lowers "the header", do this; UUIDs do not suffer, base64 does.
import { Idempotency } from "../idempotency.mjs";

export default class extends Idempotency {
  parseKey(text) {
    const { key, refusal } = super.parseKey(text);
    return { key: key?.toLowerCase(), refusal };
  }
}

// Right. A duplicate of a running request gets 409 and comes again.
export { Idempotency as default } from "../idempotency.mjs";

// Wrong for this profile: 409 for a running request, and no Retry-After. Middlewares that throw a plain conflict do
// this; a client cannot tell it from a conflict that stays.
import Acp from "../right/acp.mjs";

export default class extends Acp {
  inFlight() {
    const { "Retry-After": _advice, ...headers } = super.inFlight().headers;
    return { ...super.inFlight(), headers };
  }
}

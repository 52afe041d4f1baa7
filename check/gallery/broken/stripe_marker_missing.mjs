// Wrong for this profile: a replay looks like a first answer. Middlewares that send exactly the stored headers do this.
import Stripe from "../right/stripe.mjs";

export default class extends Stripe {
  marker() {
    return {};
  }
}

// express-idempotency as its README sets it up: the middleware before the routes, the handler leaves where there was a
// hit, and reports errors. The store is the default one (memory), or the authors' Redis adapter where REDIS names it.
import { getSharedIdempotencyService, idempotency } from "express-idempotency";
import adapters from "express-idempotency-redis-adapter";

import { Shop, invalid, listen, newApp, outcomeOf, send } from "./shop.mjs";

const shop = new Shop();
const app = newApp(shop);
const options = {};
if (process.env.REDIS) {
  options.dataAdapter = new adapters.default({ connectionConfig: { url: `redis://${process.env.REDIS}` } });
  await options.dataAdapter.connect();
}
app.post("*", idempotency(options));
app.post(["/payments", "/refunds"], async (request, response) => {
  const service = getSharedIdempotencyService();
  if (service.isHit(request)) return;
  if (invalid(request, response)) return;
  const outcome = await outcomeOf(() => shop.pay(request));
  if (outcome.status >= 500) service.reportError(request);
  send(response, outcome);
});
listen(app);

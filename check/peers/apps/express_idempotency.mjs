// express-idempotency as its README sets it up, with its default store (memory): the middleware before the routes, the
// handler leaves where there was a hit, and reports errors.
import { getSharedIdempotencyService, idempotency } from "express-idempotency";

import { Shop, invalid, listen, newApp, outcomeOf } from "./shop.mjs";

const shop = new Shop();
const app = newApp(shop);
app.post("*", idempotency());
app.post(["/payments", "/refunds"], async (request, response) => {
  const service = getSharedIdempotencyService();
  if (service.isHit(request)) return;
  if (invalid(request, response)) return;
  const { status, body } = await outcomeOf(() => shop.pay(request));
  if (status >= 500) service.reportError(request);
  response.status(status).json(body);
});
listen(app);

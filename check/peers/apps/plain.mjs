// No idempotency at all: what stands behind Idem's gateway, and what the tester says of it alone.
import { Shop, invalid, listen, newApp, outcomeOf } from "./shop.mjs";

const shop = new Shop();
const app = newApp(shop);
app.post(["/payments", "/refunds"], async (request, response) => {
  if (invalid(request, response)) return;
  const { status, body } = await outcomeOf(() => shop.pay(request));
  response.status(status).json(body);
});
listen(app);

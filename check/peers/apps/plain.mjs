// No idempotency at all: what stands behind Idem's gateway, and what the tester says of it alone.
import { Shop, invalid, listen, newApp, outcomeOf, send } from "./shop.mjs";

const shop = new Shop();
const app = newApp(shop);
const pay = async (request, response) => {
  if (invalid(request, response)) return;
  send(response, await outcomeOf(() => shop.pay(request)));
};
app.post(["/payments", "/refunds"], pay);
app.put("/payments", pay);
listen(app);

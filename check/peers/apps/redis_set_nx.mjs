// A pattern of many articles: SET NX with a time to live as a lock, the answer under the same key afterwards. Redis at
// REDIS; the lock lives a second here, as work is short.
import { createClient } from "redis";

import { Shop, invalid, listen, newApp, outcomeOf } from "./shop.mjs";

const redis = createClient({ url: `redis://${process.env.REDIS}` });
await redis.connect();
const shop = new Shop();
const app = newApp(shop);
app.post(["/payments", "/refunds"], async (request, response) => {
  const given = request.get("Idempotency-Key");
  if (!given) return response.status(400).json({ error: "Idempotency-Key is missing" });
  if (invalid(request, response)) return;
  const key = `idempotency:${given}`;
  const isFirst = await redis.set(key, "running", { NX: true, EX: 1 });
  if (!isFirst) {
    const stored = await redis.get(key);
    if (stored === null || stored === "running") return response.status(409).json({ error: "in progress" });
    const { status, body } = JSON.parse(stored);
    return response.status(status).json(body);
  }
  const answer = await outcomeOf(() => shop.pay(request));
  if (answer.status < 500) await redis.set(key, JSON.stringify(answer), { EX: 86_400 });
  else await redis.del(key);
  response.status(answer.status).json(answer.body);
});
listen(app);

// A pattern of many articles: SET NX with a time to live as a lock, the answer under the same key afterwards. Redis at
// REDIS; the lock lives LOCK_SECONDS.
import { createClient } from "redis";

import { Shop, invalid, listen, newApp, outcomeOf, send } from "./shop.mjs";

const redis = createClient({ url: `redis://${process.env.REDIS}` });
await redis.connect();
const shop = new Shop();
const app = newApp(shop);
app.post(["/payments", "/refunds"], async (request, response) => {
  const given = request.get("Idempotency-Key");
  if (!given) return response.status(400).json({ error: "Idempotency-Key is missing" });
  if (invalid(request, response)) return;
  const key = `idempotency:${given}`;
  const isFirst = await redis.set(key, "running", { NX: true, EX: Number(process.env.LOCK_SECONDS) });
  if (!isFirst) {
    const stored = await redis.get(key);
    if (stored === null || stored === "running") return response.status(409).json({ error: "in progress" });
    return send(response, JSON.parse(stored));
  }
  const outcome = await outcomeOf(() => shop.pay(request));
  if (outcome.status < 500) await redis.set(key, JSON.stringify(outcome), { EX: 86_400 });
  else await redis.del(key);
  send(response, outcome);
});
listen(app);

// @node-idempotency/core as its README describes: onRequest before the handler, onResponse behind it; enforced, so that
// a request without a key is refused. The store is memory, or Redis where REDIS names it.
import { Idempotency } from "@node-idempotency/core";
import { MemoryStorageAdapter } from "@node-idempotency/storage-adapter-memory";
import { RedisStorageAdapter } from "@node-idempotency/storage-adapter-redis";

import { Shop, invalid, listen, newApp, outcomeOf } from "./shop.mjs";

const shop = new Shop();
const app = newApp(shop);
const storage = process.env.REDIS ? new RedisStorageAdapter({ url: `redis://${process.env.REDIS}` }) : new MemoryStorageAdapter();
await storage.connect?.();
const idempotency = new Idempotency(storage, { enforceIdempotency: true });
// The statuses of the draft for the errors of the library.
const statuses = { REQUEST_IN_PROGRESS: 409, IDEMPOTENCY_FINGERPRINT_MISSMATCH: 422 };

app.post(["/payments", "/refunds"], async (request, response) => {
  if (invalid(request, response)) return;
  const seen = { method: request.method, headers: request.headers, body: request.body, path: request.path };
  try {
    const stored = await idempotency.onRequest(seen);
    if (stored) return response.status(stored.additional.status).json(stored.body);
  } catch (error) {
    return response.status(statuses[error.code] ?? 400).json({ error: error.code ?? error.message });
  }
  const { status, body } = await outcomeOf(() => shop.pay(request));
  await idempotency.onResponse(seen, { body, additional: { status } });
  response.status(status).json(body);
});
listen(app);

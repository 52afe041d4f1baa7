// A pattern of many articles: look for the key, work, insert key and answer. PostgreSQL at DATABASE.
import pg from "pg";

import { Shop, invalid, listen, newApp, outcomeOf, send } from "./shop.mjs";

const pool = new pg.Pool({ connectionString: process.env.DATABASE });
await pool.query("CREATE TABLE IF NOT EXISTS answers (key text PRIMARY KEY, status int, body jsonb)");
const shop = new Shop();
const app = newApp(shop);
app.post(["/payments", "/refunds"], async (request, response) => {
  const key = request.get("Idempotency-Key");
  if (!key) return response.status(400).json({ error: "Idempotency-Key is missing" });
  if (invalid(request, response)) return;
  const found = await pool.query("SELECT status, body FROM answers WHERE key = $1", [key]);
  if (found.rowCount > 0) return send(response, found.rows[0]);
  const { status, body } = await outcomeOf(() => shop.pay(request));
  if (status < 500)
    await pool.query("INSERT INTO answers VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", [key, status, body]);
  send(response, { status, body });
});
listen(app);

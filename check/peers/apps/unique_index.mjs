// A pattern of payment providers' articles: a row with a unique index on tenant, path and key is inserted first, locked
// while the work runs, and gets the answer; another body is refused. PostgreSQL at DATABASE.
import { createHash } from "node:crypto";
import pg from "pg";

import { Shop, invalid, listen, newApp, outcomeOf, send } from "./shop.mjs";

const pool = new pg.Pool({ connectionString: process.env.DATABASE });
await pool.query(`CREATE TABLE IF NOT EXISTS keys (tenant text, path text, key text, digest text NOT NULL, locked_at timestamptz,
  status int, body json, PRIMARY KEY (tenant, path, key))`);
const shop = new Shop();
const app = newApp(shop);
app.post(["/payments", "/refunds"], async (request, response) => {
  const given = request.get("Idempotency-Key");
  if (!given) return response.status(400).json({ error: "Idempotency-Key is missing" });
  if (invalid(request, response)) return;
  const id = [request.get("X-Tenant-Id") ?? "", request.path, given];
  const digest = createHash("sha256").update(JSON.stringify(request.body)).digest("hex");
  const made = await pool.query("INSERT INTO keys VALUES ($1, $2, $3, $4, now()) ON CONFLICT DO NOTHING", [
    ...id,
    digest,
  ]);
  if (made.rowCount === 0) {
    const where = "tenant = $1 AND path = $2 AND key = $3";
    const { rows } = await pool.query(`SELECT digest, locked_at, status, body FROM keys WHERE ${where}`, id);
    const [row] = rows;
    if (row && row.digest !== digest) return response.status(422).json({ error: "the key belongs to another request" });
    if (!row || row.locked_at !== null)
      return response.status(409).set("Retry-After", "1").json({ error: "in progress" });
    return send(response, row);
  }
  const { status, body } = await outcomeOf(() => shop.pay(request));
  if (status >= 500) await pool.query("DELETE FROM keys WHERE tenant = $1 AND path = $2 AND key = $3", id);
  else
    await pool.query(
      "UPDATE keys SET locked_at = NULL, status = $4, body = $5 WHERE tenant = $1 AND path = $2 AND key = $3",
      [...id, status, JSON.stringify(body)],
    );
  send(response, { status, body });
});
listen(app);

// The console on a bad day: many records, load, a store that is down, a login that ends.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { World, accessible, fits, missing } from "./support.mjs";

const skip = missing();
const isServer = process.env.IDEM_BROWSER_STORE === "postgres";
// More than PostgreSQL counts one by one.
const records = Number(process.env.IDEM_BROWSER_RECORDS ?? 200_000);
const unknown = 300;
let world;
before(async () => {
  if (skip) return;
  world = await World.begin(process.env.IDEM_BROWSER_STORE, { records, unknown });
});
after(() => world?.end());

const at = (page, place) => page.goto(`${world.admin}/#/${place}`);
const text = (number) => number.toLocaleString("en");

/** The sweeper has found all attempts that were cut off. */
async function swept() {
  for (const end = Date.now() + 60_000; Date.now() < end; ) {
    const { counts } = await world.read("/v1/keys?limit=1");
    if (counts.unknown >= unknown) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.fail("the attempts that were cut off did not become unknown");
}

test("of many records the counts are right, and one is found at once", { skip }, async () => {
  await swept();
  assert.equal((await world.charge("needle")).status, 201);
  const page = await world.logIn("support");
  // PostgreSQL estimates the completed ones of a large table, and counts the unknown ones.
  if (!isServer) await page.getByRole("listitem").filter({ hasText: "completed" }).getByText(text(records + 1)).waitFor();
  await page.getByRole("listitem").filter({ hasText: "? unknown" }).getByText(text(unknown), { exact: true }).waitFor();
  await page.getByRole("listitem").filter({ hasText: `${unknown} unknown records are left to operators` }).getByText("Money").waitFor();
  await at(page, "find");
  await page.getByRole("row").nth(50).waitFor();
  await page.getByRole("button", { name: "Next page" }).click();
  await page.waitForFunction(() => location.hash.includes("cursor="));
  await page.getByRole("row").nth(50).waitFor();
  await at(page, "find?state=unknown");
  await page.getByRole("row").nth(50).waitFor();
  assert.equal(await page.getByRole("row").filter({ hasText: "unknown" }).count(), 50);
  await page.getByLabel("Scope").fill("acme");
  await page.getByLabel("Operation").fill("POST /charges");
  await page.getByRole("searchbox").fill("needle");
  await page.getByRole("button", { name: "Find" }).click();
  await page.getByRole("row").nth(1).getByRole("link").click();
  await page.getByText("It has ended with status 201").waitFor();
  assert.deepEqual(page.errors, []);
});

test("each screen loads again and again under load, and no request is disturbed", { skip }, async () => {
  const page = await world.logIn("operator");
  let isOver = false;
  const statuses = new Set();
  let sent = 0;
  const load = Array.from({ length: 4 }, async (_, client) => {
    while (!isOver) {
      sent += 1;
      statuses.add((await world.charge(`load-${client}-${sent % 500}`)).status);
    }
  });
  try {
    for (const place of ["overview", "find", "unknown", "messages", "routes", "retries", "jobs", "approvals", "audit", "system"]) {
      await at(page, place);
      await page.reload();
      await page.getByRole("heading", { level: 1 }).waitFor();
      await page.waitForFunction(() => document.querySelector(".loading") === null);
    }
  } finally {
    isOver = true;
    await Promise.all(load);
  }
  assert.ok(sent > 50, `${sent} requests`);
  // A retry may meet its own first request.
  assert.deepEqual([...statuses].filter((status) => status !== 201 && status !== 409), []);
  assert.deepEqual(page.errors, []);
});

test("a login that is revoked while a form is open orders nothing", { skip }, async () => {
  const { keys } = await world.read("/v1/keys?state=unknown&limit=1");
  const page = await world.logIn("support");
  const operator = await world.logIn("operator");
  await at(operator, `operation/${keys[0].ref}`);
  await operator.getByRole("button", { name: "It was done" }).click();
  await operator.getByLabel("What you saw").fill("charge ch_1");
  await operator.getByLabel("Reason").fill("seen");
  await operator.getByLabel("Status").fill("201");
  await operator.getByLabel("Body", { exact: true }).fill("{}");
  // The page's own questions end with the login, too: whichever is first.
  await world.revoke("operator");
  await operator.getByRole("button", { name: "Complete it" }).click({ timeout: 2_000 }).catch(() => {});
  await operator.getByText(/Your login has ended|Your login had ended: nothing was ordered/).waitFor();
  await operator.getByLabel("Token").waitFor();
  await accessible(operator);
  await at(page, `operation/${keys[0].ref}`);
  await page.getByText("The work may have run").waitFor();
  assert.deepEqual(page.errors, []);
});

test("a store that is down is said to be down on each screen, and comes back by itself", { skip: skip || (isServer ? false : "a file is not down") }, async () => {
  const page = await world.logIn("support");
  await page.getByRole("heading", { name: "Records" }).waitFor();
  await world.letIn(false);
  try {
    const need = page.getByRole("listitem").filter({ hasText: "The store does not answer" });
    await need.getByText("Outage").waitFor();
    await need.getByText("requests with a key are refused with 503").waitFor();
    await accessible(page);
    await fits(page);
    assert.equal((await world.charge("meanwhile")).status, 503);
    for (const place of ["find", "unknown", "audit"]) {
      await at(page, place);
      await page.getByRole("alert").getByText("its store does not answer").first().waitFor();
      await accessible(page);
    }
    await at(page, "system");
    await page.getByRole("row").filter({ hasText: "store" }).getByText("✗ does not answer").waitFor();
  } finally {
    await world.letIn(true);
  }
  await page.getByRole("row").filter({ hasText: "store" }).getByText("✓ answers").waitFor({ timeout: 60_000 });
  await at(page, "find");
  await page.getByRole("row").nth(1).waitFor();
});

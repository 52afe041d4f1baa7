// Routes with their policy, shadow and quotas, and the question what would become of a request.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { World, accessible, fits, missing } from "./support.mjs";

const skip = missing();
let world;
before(async () => {
  if (skip) return;
  world = await World.begin(process.env.IDEM_BROWSER_STORE);
  world.writeSettings(`quotas: { active_keys: 2 }
routes:
  - { name: charges, match: { methods: [POST], path: /charges }, retention: 48h, statuses: { 402: release } }
  - { name: trial, match: { path: "/trial/{rest...}" }, enforce: shadow }
`);
  await world.idem("config", "reload", "--reason", "a trial");
});
after(() => world?.end());

const at = (page, place) => page.goto(`${world.admin}/#/${place}`);
const row = (page, text) => page.getByRole("row").filter({ hasText: text });

/** A request of the tenant acme; on the route `trial` nothing is enforced. */
const send = (path, key, body) =>
  fetch(`http://${world.gateway.addresses.gateway}${path}`, {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      "X-Tenant-Id": "acme",
      ...(key === null ? {} : { "Idempotency-Key": key }),
    },
    body,
  });

/** Once the route `trial` has observed so many. */
async function observed(requests) {
  for (;;) {
    const { routes, under_way } = await world.read("/v1/shadow");
    if (routes.find((one) => one.route === "trial")?.requests >= requests && under_way === 0) return;
  }
}

test("each route shows its policy and where each setting comes from", { skip }, async () => {
  const page = await world.logIn("viewer");
  await page.keyboard.press("g");
  await page.keyboard.press("r");
  await page.getByRole("heading", { name: "Routes" }).waitFor();
  await row(page, "POST /charges").getByText("48h").waitFor();
  await row(page, "/trial/{rest...}").getByText("shadow: every request passes").waitFor();
  await row(page, "all other requests").waitFor();
  await page.getByRole("link", { name: "charges", exact: true }).click();
  await page.getByRole("heading", { name: "charges" }).waitFor();
  assert.ok(page.url().endsWith("#/routes/charges"));
  await page.getByText("have their built-in value").click();
  const settings = page.getByRole("table", { name: /ettings of charges/ });
  const origin = async (name) => {
    const line = settings.getByRole("row").filter({ has: page.getByText(name, { exact: true }) });
    return [await line.getByRole("cell").nth(1).innerText(), await line.getByRole("cell").nth(2).innerText()];
  };
  const [retention, where] = await origin("retention");
  assert.equal(retention, "48h");
  assert.match(where, /^this route: .*idem\.yaml:\d+:\d+$/);
  const [lease, all] = await origin("lease");
  assert.equal(lease, "3s");
  assert.match(all, /^for all routes: .*idem\.yaml:\d+:\d+$/);
  assert.deepEqual(await origin("tombstone"), ["30d", "built in"]);
  assert.deepEqual(await origin("reconcile"), ["none", "built in"]);
  const answers = page.getByRole("table", { name: "Answers of the upstream" });
  await answers.getByRole("row").filter({ hasText: "402" }).getByText("this route").waitFor();
  await answers.getByRole("row").filter({ hasText: "409 with Retry-After" }).getByText("preset ietf").waitFor();
  await answers.getByRole("row").filter({ hasText: /421.*425/ }).getByText("proves that nothing ran").waitFor();
  await page.getByText("The rules for keys are enforced here: that is normal.").waitFor();
  await at(page, "routes/gone");
  await page.getByText("No route is called gone").waitFor();
  assert.deepEqual(page.errors, []);
});

test("the shadow report says what enforcing would do", { skip }, async () => {
  const page = await world.logIn("support");
  await at(page, "routes/trial");
  await page.getByText("Nothing is enforced here: every request passes").waitFor();
  await page.getByText("the gateway observed 0 requests").waitFor();
  let sent = 0;
  for (const [key, body] of [["a", "1"], ["a", "1"], ["a", "2"], [null, "1"]]) {
    await (await send("/trial/x", key, body)).text();
    await observed(++sent);
  }
  await page.getByText("the gateway observed 4 requests").waitFor();
  const list = page.getByRole("region", { name: "Shadow" }).getByRole("listitem");
  await list.getByText("1 would get the stored answer").waitFor();
  await list.getByText("would get 422, because the key was used for another request").waitFor();
  await list.getByText("would get 400, because they have no key").waitFor();
  await page.getByRole("table", { name: "Shadow by tenant" }).getByRole("row").filter({ hasText: "acme" }).waitFor();
  await page.getByText("By client").click();
  await page.getByRole("table", { name: "Shadow by client" }).getByText("127.0.0.1").first().waitFor();
  const examples = page.getByRole("table", { name: "Examples" });
  await examples.getByRole("row").filter({ hasText: "400" }).getByText("POST /trial/x").waitFor();
  await examples.getByRole("row").filter({ hasText: "422" }).getByRole("link").waitFor();
  const viewer = await world.logIn("viewer");
  await at(viewer, "routes/trial");
  await viewer.getByText("would get 422").waitFor();
  await viewer.getByText("Examples need the role support; you have the role viewer.").waitFor();
  assert.equal(await viewer.getByRole("table", { name: "Examples" }).count(), 0);
  assert.deepEqual([...page.errors, ...viewer.errors], []);
});

test("the page of quotas names the tenants that were refused", { skip }, async () => {
  const page = await world.logIn("viewer");
  await at(page, "routes");
  await page.getByText("refused no new key for a quota").waitFor();
  const quota = page.getByRole("table", { name: "Quotas" }).getByRole("row").filter({ hasText: "quotas.active_keys" });
  assert.equal(await quota.getByRole("cell").nth(1).innerText(), "2");
  assert.equal((await world.charge("one")).status, 201);
  assert.equal((await world.charge("two")).status, 201);
  assert.equal((await world.charge("three")).status, 429);
  const refused = page.getByRole("table", { name: "Refused by tenant" }).getByRole("row").filter({ hasText: "acme" });
  await refused.getByText("1", { exact: true }).waitFor();
  await page.getByText("cannot be read").waitFor();
  assert.deepEqual(page.errors, []);
});

/** Fills in the form with a charge of acme. */
async function fill(page, { key, more = {} }) {
  await page.getByLabel("Path and query").fill("/charges");
  await page.getByLabel("Header").fill(`Idempotency-Key: ${key}\nX-Tenant-Id: acme\nContent-Type: application/json`);
  await page.getByLabel("Body").fill(JSON.stringify({ amount: 1250, currency: "EUR", ...more }));
}

test("a question says what would happen, and nothing runs", { skip }, async () => {
  const page = await world.logIn("support");
  await at(page, "routes");
  await page.getByRole("link", { name: "what would happen to a request?" }).click();
  await page.getByRole("heading", { name: "Explain" }).waitFor();
  const ask = page.getByRole("button", { name: "What would happen?" });
  const { keys: before } = await world.read("/v1/keys");
  await fill(page, { key: "one" });
  await ask.click();
  const outcome = page.getByRole("region", { name: "What would happen" });
  await outcome.getByText("Nothing would run: the request would get the stored answer.").waitFor();
  await outcome.getByText("The operation has completed").waitFor();
  await outcome.getByText("3 bytes in Idempotency-Key, bare").waitFor();
  await outcome.getByText("the same request as in the record").waitFor();
  await outcome.getByRole("link", { name: "charges" }).waitFor();
  assert.ok(!page.url().includes("one") && page.url().endsWith("#/explain"), "no key in the address");
  // An old answer beside a new question would mislead.
  await page.getByLabel("Body").fill('{"amount":1250,"currency":"EUR","note":"x"}');
  await page.getByText("The form has changed: ask again.").waitFor();
  await ask.click();
  await outcome.getByText("Nothing would run: the key belongs to another request.").waitFor();
  await outcome.getByText("422 key_reused").waitFor();
  await page.getByRole("table", { name: "Differences" }).getByRole("row").filter({ hasText: "/note" }).waitFor();
  await accessible(page);
  await outcome.getByRole("definition").getByRole("link").last().click();
  await page.getByRole("heading", { name: "Operation" }).waitFor();
  await page.goBack();
  assert.match(await page.getByLabel("Header").inputValue(), /Idempotency-Key: one/, "the form is kept in memory");
  await fill(page, { key: "fresh" });
  await ask.click();
  await outcome.getByText("its reference would be").waitFor();
  assert.equal((await world.read("/v1/keys")).keys.length, before.length, "nothing was made");
  assert.deepEqual(page.errors, []);
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByLabel("Token").fill(world.tokens.operator);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByLabel("Header").waitFor();
  assert.equal(await page.getByLabel("Body").inputValue(), "", "another person finds nothing of it");
});

test("a wrong form is refused in words, and an answer of something in between decides nothing", { skip }, async () => {
  const page = await world.logIn("operator");
  await at(page, "explain");
  await fill(page, { key: "one" });
  const ask = page.getByRole("button", { name: "What would happen?" });
  await page.getByLabel("Header").fill("Idempotency-Key one");
  await page.getByRole("alert").getByText("Line 1 of the header is no field.").waitFor();
  assert.ok(await ask.isDisabled());
  await page.getByLabel("Header").fill("Idempotency-Key: one\nContent-Type: application/json");
  await page.getByLabel("Scope").fill("acme");
  await ask.click();
  await page.getByText("the request would get the stored answer").waitFor();
  for (const body of ["<html>", "{}"]) {
    await page.route("**/v1/explain", (route) => route.fulfill({ status: 200, contentType: "text/html", body }));
    await ask.click();
    await page.getByRole("alert").getByText("Nothing ran: this only asks. Ask again.").waitFor();
    assert.equal(await page.getByText("the request would get the stored answer").count(), 0, "no former answer");
    await page.unroute("**/v1/explain");
  }
  await ask.click();
  await page.getByText("the request would get the stored answer").waitFor();
  assert.equal(await page.getByRole("alert").count(), 0);
  const viewer = await world.logIn("viewer");
  await at(viewer, "explain");
  await viewer.getByText("To ask this needs the role support; you have the role viewer.").waitFor();
  assert.deepEqual(viewer.errors, []);
});

test("no rule of axe is broken, and nothing is wider than the window", { skip }, async () => {
  for (const theme of ["light", "dark"]) {
    for (const width of [1440, 360]) {
      const page = await world.logIn("operator", { theme, width });
      const places = { routes: "Routes", "routes/charges": "charges", "routes/trial": "trial", explain: "Explain" };
      for (const [place, heading] of Object.entries(places)) {
        await at(page, place);
        await page.getByRole("heading", { name: heading, exact: true }).waitFor();
        await page.waitForFunction(() => document.querySelector(".loading") === null);
        for (const closed of await page.locator("summary").all()) await closed.click();
        await accessible(page);
        await fits(page);
      }
      await fill(page, { key: "one", more: { note: "x" } });
      await page.getByRole("button", { name: "What would happen?" }).click();
      await page.getByRole("table", { name: "Differences" }).waitFor();
      await accessible(page);
      await fits(page);
      assert.deepEqual(page.errors, []);
      await page.context().close();
    }
  }
});

// A record is found by a value that it had, and the page says what it has searched.
import { after, before, test } from "node:test";
import assert from "node:assert/strict";

import { World, accessible, fits, missing } from "./support.mjs";

const skip = missing();
const trace = "4bf92f3577b34da6a3ce929d0e0e4736";
const box = "Reference or key, trace";
let world;
before(async () => {
  if (skip) return;
  world = await World.begin(process.env.IDEM_BROWSER_STORE, { more: "search: { requests: [/amount], answers: [/id] }" });
});
after(async () => {
  await world?.end();
});

/** An empty form: the page that was there may have another text in it. */
async function at(page, address) {
  await page.evaluate((to) => {
    location.hash = `#/${to}`;
  }, address);
  await page.waitForFunction(() => document.getElementById("find")?.value === "");
}
async function look(page, text) {
  await page.getByLabel(box).fill(text);
  await page.getByRole("button", { name: "Find" }).click();
}
/** A request that a trace began; its record once the index has it. */
async function traced(key, amount, faults = "") {
  const answer = await fetch(`http://${world.gateway.addresses.gateway}/charges`, {
    method: "POST",
    headers: {
      "Content-Type": "application/json", "X-Tenant-Id": "acme", "Idempotency-Key": key,
      traceparent: `00-${trace}-00f067aa0ba902b7-01`, ...(faults === "" ? {} : { "X-Fault": faults }),
    },
    body: JSON.stringify({ amount, currency: "EUR" }),
  });
  const text = await answer.text();
  for (;;) {
    const { keys } = await world.read(`/v1/keys?find=${amount}`);
    if (keys.length === 1) return { ref: keys[0].ref, text, status: answer.status };
  }
}

test("a record is found by an order, the provider's id and a trace", { skip }, async () => {
  const { ref, text } = await traced("k1", 4711);
  const page = await world.logIn("support");
  await at(page, "find?state=expired");
  const row = page.getByRole("row").filter({ hasText: ref.slice(0, 8) });
  for (const [value, by] of [["4711", "request /amount"], [JSON.parse(text).id, "answer /id"], [trace, "trace"], [trace.toUpperCase(), "trace"]]) {
    await look(page, value);
    await row.getByRole("cell", { name: by, exact: true }).waitFor();
  }
  assert.ok(page.url().includes("find="), "a link leads to the same search");
  await page.getByText("Indexed since").waitFor();
  await page.getByText("/amount").first().waitFor();
  await row.getByRole("link").click();
  await page.getByText("It has ended with status 201").waitFor();
  assert.deepEqual(page.errors, []);
});

test("a first request that ended unknown is found", { skip }, async () => {
  const { ref, status } = await traced("lost", 815, "drop-after");
  assert.equal(status, 502);
  const page = await world.logIn("operator");
  await at(page, "find");
  await look(page, "815");
  await page.getByRole("row").filter({ hasText: ref.slice(0, 8) }).getByText("unknown").waitFor();
  assert.deepEqual(page.errors, []);
});

test("a reference leads to its record, and one that is none is looked for", { skip }, async () => {
  const { ref } = await traced("k2", 4712);
  const page = await world.logIn("support");
  await at(page, "find");
  await look(page, ref);
  await page.getByRole("heading", { name: "Operation" }).waitFor();
  for (const none of ["0123456789abcdef0123456789abcdef", "0".repeat(32), "f".repeat(32)]) {
    await at(page, "find");
    await look(page, none);
    await page.getByText("No record was found by this value").waitFor();
  }
  assert.deepEqual(page.errors, []);
});

test("an empty search says what it has not read, and a key still needs its scope", { skip }, async () => {
  const page = await world.logIn("support");
  for (const value of ["nobody's", "<script>alert(1)</script>", "a/b?c#d&e=%f", "ä 😀"]) {
    await at(page, "find");
    await look(page, value);
    await page.getByText("No record was found by this value. That does not prove that there is none.").waitFor();
    assert.equal(await page.getByLabel(box).inputValue(), value);
  }
  await page.getByText("If the text is a client's key, write its scope and operation beside it.").waitFor();
  await page.getByLabel("Scope").fill("acme");
  await page.getByLabel("Operation").fill("POST /charges");
  await look(page, "no such key");
  await page.getByText("No record of this key in this scope and operation").waitFor();
  assert.deepEqual(page.errors, []);
});

test("a viewer learns which role a search needs", { skip }, async () => {
  const page = await world.logIn("viewer");
  await at(page, "find");
  await look(page, "4711");
  await page.getByRole("alert").getByText("need the role support").waitFor();
  assert.equal(await page.getByText("Reading records").count(), 0);
});

test("the page fits and is accessible in both themes", { skip }, async () => {
  await traced("k3", 4713);
  for (const [theme, width] of [["light", 360], ["dark", 360], ["light", 1280], ["dark", 1280]]) {
    const page = await world.logIn("support", { theme, width });
    await at(page, "find");
    await look(page, "4713");
    await page.getByRole("table").getByText("request /amount").waitFor();
    await accessible(page);
    await fits(page);
    await look(page, "nothing of this name");
    await page.getByText("No record was found by this value").waitFor();
    await accessible(page);
    await fits(page);
    assert.deepEqual(page.errors, []);
    await page.context().close();
  }
});

test("where nothing is indexed, the page says how to begin", { skip }, async () => {
  await world.gateway.kill();
  world.more = "";
  await world.startGateway();
  const page = await world.logIn("support");
  await at(page, "find");
  await look(page, "4711");
  await page.getByText("Values are no longer indexed: only older ones are found.").waitFor();
  await page.getByText("search: { requests: [/order_id], answers: [/id] }").waitFor();
  await page.getByRole("cell", { name: "request /amount", exact: true }).waitFor();
  assert.deepEqual(page.errors, []);
});

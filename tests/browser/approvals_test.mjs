// Orders that wait for another person, and tokens.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { World, accessible, fits, missing } from "./support.mjs";

const skip = missing();
let world;
before(async () => {
  if (skip) return;
  world = await World.begin(process.env.IDEM_BROWSER_STORE);
  await world.charge("lost-1", "drop-after");
  await world.charge("lost-2", "drop-after");
});
after(() => world?.end());

const at = (page, place) => page.goto(`${world.admin}/#/${place}`);

/** A second operator: made on the page, as an operator would. */
async function second(page, name, role) {
  await at(page, "tokens");
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByLabel("Role").selectOption(role);
  await page.getByRole("button", { name: "Make the token" }).click();
  await page.getByText("Nobody can read it again").waitFor();
  return (await page.locator(".trouble pre").textContent()).trim();
}

/** An order about this record that waits. */
async function order(page, ref) {
  await at(page, `operation/${ref}`);
  await page.getByRole("button", { name: "It was done" }).click();
  await page.getByLabel("What you saw").fill("charge ch_7 in the books");
  await page.getByLabel("Reason").fill("seen by hand");
  await page.getByLabel("Status").fill("201");
  await page.getByLabel("Body", { exact: true }).fill('{"id":"ch_7"}');
  await page.getByRole("button", { name: "Complete it" }).click();
  const said = page.getByRole("status").filter({ hasText: "Nothing is done yet. Another operator must approve it" });
  const link = await said.getByRole("link", { name: "see the order" }).getAttribute("href");
  assert.match(link, /^#\/approvals\/[0-9a-f]{32}$/);
}

async function logInWith(token) {
  const page = await world.open();
  await page.goto(`${world.admin}/`);
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  page.errors.length = 0;
  return page;
}

test("a token is made, used, and revoked at once", { skip }, async () => {
  const page = await world.logIn("operator");
  const token = await second(page, "temp", "viewer");
  assert.match(token, /^idem_[0-9a-f]{64}$/);
  await accessible(page);
  const holder = await logInWith(token);
  await holder.locator(".who").getByText("temp (viewer)").waitFor();
  await at(holder, "tokens");
  await holder.getByText("Tokens need the role operator").waitFor();
  await page.getByRole("button", { name: "Revoke the token of temp" }).click();
  await page.getByLabel("Reason").fill("it was for a test");
  await page.getByRole("button", { name: "Revoke it" }).click();
  await page.getByRole("status").getByText("The token of temp is revoked").waitFor();
  assert.equal(await page.getByRole("table", { name: "Tokens" }).getByRole("row").filter({ hasText: "temp" }).count(), 0);
  const answer = await fetch(`${world.admin}/v1/status`, { headers: { Authorization: `Bearer ${token}` } });
  assert.equal(answer.status, 401);
  await holder.reload();
  await holder.getByLabel("Token").waitFor();
  assert.deepEqual(page.errors, []);
});

test("an order of one person is approved by another, and rejected by a third look", { skip }, async () => {
  const [first, other] = (await world.read("/v1/keys?state=unknown")).keys;
  const token = await second(await world.logIn("operator"), "grace", "operator");
  await world.gateway.kill("SIGTERM");
  world.more = "approvals: { resolve: 2 }\n";
  await world.startGateway();
  const ada = await world.logIn("operator");
  const grace = await logInWith(token);
  await order(ada, first.ref);
  await order(ada, other.ref);
  await at(ada, "approvals");
  await ada.getByRole("row").nth(2).waitFor();
  await ada.getByRole("row").nth(1).getByRole("link").click();
  await ada.getByText("You have approved it already").waitFor();
  await ada.getByText('{"id":"ch_7"}').waitFor();
  await ada.getByText("The record completes with the answer of the order").waitFor();
  await ada.getByText(/^unknown, attempt \d+: ✓ the same$/).waitFor();
  await ada.getByLabel("Reason").fill("me again");
  assert.ok(await ada.getByRole("button", { name: "Approve" }).isDisabled());
  assert.ok(await ada.getByRole("button", { name: "Reject" }).isEnabled());
  const id = new URL(ada.url()).hash.split("/").at(-1);
  const repeated = await fetch(`${world.admin}/v1/approvals/${id}/approve`, {
    method: "POST",
    headers: { Authorization: `Bearer ${world.tokens.operator}`, "Content-Type": "application/json" },
    body: '{"reason":"me again"}',
  });
  assert.equal(repeated.status, 409);
  assert.equal((await world.read("/v1/keys?state=unknown")).keys.length, 2, "a name counts once");
  const support = await world.logIn("support");
  await at(support, `approvals/${id}`);
  await support.getByText("Approving and rejecting need the role operator; you have the role support").waitFor();
  await at(grace, `approvals/${id}`);
  await grace.getByText("Your approval is the last one").waitFor();
  await grace.getByText("charge ch_7 in the books").waitFor();
  await grace.getByText("1 of 2").waitFor();
  await accessible(grace);
  await fits(grace);
  await grace.getByLabel("Reason").fill("I saw it, too");
  // What comes from something in between says nothing about the order.
  await grace.route("**/approve", (route) => route.fulfill({ status: 200, body: "{}" }), { times: 1 });
  await grace.getByRole("button", { name: "Approve" }).click();
  await grace.getByRole("alert").getByText("It is not known whether your order was carried out").waitFor();
  assert.equal(await grace.getByLabel("Reason").inputValue(), "I saw it, too");
  await grace.getByRole("button", { name: "Approve" }).click();
  await grace.getByRole("status").getByText("It was carried out").waitFor();
  assert.equal((await world.read("/v1/keys?state=completed")).keys.length, 1);
  await at(grace, "approvals");
  await grace.getByRole("row").filter({ hasText: "waiting" }).getByRole("link").click();
  await grace.getByLabel("Reason").fill("the books say otherwise");
  await grace.getByRole("button", { name: "Reject" }).click();
  await grace.getByRole("status").getByText("Rejected: nothing is done").waitFor();
  assert.equal((await world.read("/v1/keys?state=unknown")).keys.length, 1);
  assert.deepEqual(grace.errors, []);
  const viewer = await world.logIn("viewer");
  await at(viewer, "approvals");
  await viewer.getByText("Approvals need the role support").waitFor();
  // Who alone could make a second person needs no second person.
  await at(ada, "tokens");
  await ada.getByLabel("Name", { exact: true }).fill("me-again");
  await ada.getByRole("button", { name: "Make the token" }).click();
  await ada.getByText("tokens are made on the gateway's machine").waitFor();
});

test("no rule of axe is broken, and nothing is wider than the window", { skip }, async () => {
  const { approvals } = await world.read("/v1/approvals");
  const one = `approvals/${approvals[0].approval}`;
  for (const theme of ["light", "dark"]) {
    const page = await world.logIn("operator", { theme, width: 360 });
    for (const [place, heading] of [["approvals", "Approvals"], [one, "Approvals"], ["tokens", "Tokens"]]) {
      await at(page, place);
      await page.getByRole("heading", { name: heading, level: 1 }).waitFor();
      await page.waitForFunction(() => document.querySelector(".loading") === null);
      await accessible(page);
      await fits(page);
    }
    assert.deepEqual(page.errors, []);
    await page.context().close();
  }
});

test("whether a token was made is not known behind a lost answer, and the page says what to do", { skip }, async () => {
  const page = await world.logIn("operator");
  await at(page, "tokens");
  await page.getByLabel("Name", { exact: true }).fill("nobody");
  await page.route("**/v1/tokens", (route) => route.fulfill({ status: 502, body: "<p>No" }), { times: 1 });
  await page.getByRole("button", { name: "Make the token" }).click();
  await page.getByText("the token was made, and nobody can read it: revoke it").waitFor();
  assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "nobody");
  assert.equal(await page.getByRole("button", { name: "Copy the token" }).count(), 0);
});

test("a store without messages shows what is normal", { skip }, async () => {
  const page = await world.logIn("operator");
  await at(page, "messages");
  await page.getByText("No message waits, no letter is dead").waitFor();
  await page.getByText("No message waits. That is normal").waitFor();
  await page.getByRole("link", { name: "dead letters" }).click();
  await page.getByText("There is no dead letter. That is normal.").waitFor();
  await page.getByRole("button", { name: "Send again…" }).click();
  await page.getByLabel("Reason").fill("to see");
  await page.getByRole("button", { name: "See what it would do" }).click();
  await page.getByText("No dead letter matches.").waitFor();
  assert.equal(await page.getByRole("button", { name: /^Send again: / }).count(), 0);
  await accessible(page);
  await fits(page);
  assert.deepEqual(page.errors, []);
});

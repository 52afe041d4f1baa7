// Unknown outcomes: by provider, one by one, and many at once by jobs.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { World, accessible, fits, missing } from "./support.mjs";

const skip = missing();
let world;

/** A bank whose answers make no answer for retries, a provider that is down, and routes that ask nobody. */
const settings = (more = "") => `evidence_grace: 1s
${more}providers:
  - name: bank
    url: "http://${world.provider.addresses.provider}/charges?operation={operation}"
    found: ["200 /charges/0"]
    not_there: ["200 !/charges/0"]
    replay: { found_status: 201, body: /charges/0/nothing }
  - name: mute
    url: "http://127.0.0.1:9/charges?operation={operation}"
    found: ["200 /charges/0"]
    not_there: ["404"]
    retry_first: 100ms
    retry_max: 200ms
    attempts: 1000
routes:
  - { name: charges, match: { methods: [POST], path: /charges }, reconcile: bank }
  - { name: mute, match: { methods: [POST], path: /mute }, reconcile: mute }
`;

before(async () => {
  if (skip) return;
  world = await World.begin(process.env.IDEM_BROWSER_STORE);
  await restart();
});
after(() => world?.end());

async function restart(more = "") {
  await world.gateway.kill("SIGTERM");
  world.more = settings(more);
  await world.startGateway();
}

const at = (page, place) => page.goto(`${world.admin}/#/${place}`);
const group = (page, name) => page.getByRole("region", { name });

/** A request whose answer is lost, and the ref of its record. */
async function lose(path, key) {
  const answer = await fetch(`http://${world.gateway.addresses.gateway}${path}`, {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      "X-Tenant-Id": "acme",
      "Idempotency-Key": key,
      "X-Fault": "drop-after",
    },
    body: "{}",
  });
  const text = await answer.text();
  assert.equal(answer.status, 502, text);
  return JSON.parse(text).operation_ref;
}

async function loseMany(path, number, from = 0) {
  const refs = [];
  for (let i = from; i < from + number; ++i) refs.push(await lose(path, `many-${i}`));
  return refs;
}

const operation = (path) => `POST ${path}`;
const of = (path) => encodeURIComponent(operation(path));
const listed = (path, state) => world.read(`/v1/keys?state=${state}&operation=${of(path)}&limit=1000`);

/** Until what holds, by the store. */
async function until(holds) {
  while (!(await holds()));
}

/** Until an absence counts for each record of this path. */
const provable = (path) =>
  until(async () => {
    const { keys, now } = await listed(path, "unknown");
    return keys.every((one) => Date.parse(now) > Date.parse(one.locked_until) + 1_500);
  });

const decide = (page) => page.getByRole("region", { name: "2. Decide" });

/** The form of a job that lets all of them run again, filled in. */
async function fillRelease(page, path, number, rate, name = operation(path)) {
  await at(page, `unknown/all?operation=${encodeURIComponent(name)}`);
  await page.getByRole("button", { name: "Count the records that match" }).click();
  await page.getByRole("status").getByText(`${number} unknown record`).waitFor();
  await decide(page).getByRole("button", { name: "None of these was done" }).click();
  await page.getByRole("button", { name: "I start looking now" }).click();
  await page.getByText("You started to look at").waitFor();
  await page.getByLabel("What you saw").fill("the list of today has none of them");
  await page.getByLabel("Reason").fill("ticket 4711");
  await page.getByLabel("Records a second").fill(String(rate));
}

const send = (page) => page.getByRole("button", { name: /^Let them run again: / });

test("without unknown records the page says that this is normal", { skip }, async () => {
  const page = await world.logIn("viewer");
  await page.keyboard.press("g");
  await page.keyboard.press("u");
  await page.getByText("No outcome is unknown. That is normal").waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("j");
  await page.getByText("No job in the last 30 days").waitFor();
  await accessible(page);
  assert.deepEqual(page.errors, []);
});

test("records are grouped by provider, contested ones first, with what comes next", { skip }, async () => {
  const [plain, mute] = [await lose("/plain", "one"), await lose("/mute", "one")];
  const charge = await lose("/charges", "one");
  // An answer that comes before an absence could count may be asked for twice.
  await until(async () => {
    const { contested, reconcile_after } = await world.read(`/v1/keys/${charge}`);
    return contested && reconcile_after === null;
  });
  await until(async () => (await world.read(`/v1/keys/${mute}`)).reconcile_attempts > 2);
  const page = await world.logIn("operator");
  await at(page, "unknown");
  await group(page, "Provider bank").getByText("1 contested", { exact: true }).waitFor();
  const names = await page.getByRole("region").evaluateAll((all) => all.map((one) => one.getAttribute("aria-label")));
  const groups = ["Provider bank", "No provider: an operator decides", "Provider mute"];
  assert.deepEqual(names, [...groups, "Decide about many at once"]);
  await group(page, "Provider bank").getByRole("link", { name: charge.slice(0, 8) }).getByText("contested").waitFor();
  await group(page, "Provider bank").getByText(/asked (once|twice), then left to operators/).waitFor();
  await group(page, "Provider bank").getByText("✓ answers").waitFor();
  const line = group(page, "No provider").getByRole("listitem").filter({ hasText: plain.slice(0, 8) });
  await line.getByText("left to operators").waitFor();
  await group(page, "Provider mute").getByRole("listitem").getByText(/asked (twice|\d+ times), (next|due)/).waitFor();
  await group(page, "Provider mute").getByText("✗ does not answer; last failure").waitFor();
  await page.getByText("Filter by a scope or an operation first").waitFor();
  await page.getByRole("link", { name: "only contested" }).click();
  await group(page, "No provider").waitFor({ state: "detached" });
  await group(page, "Provider bank").waitFor();
  await at(page, "unknown?older_than=1h");
  await page.getByText("No unknown record matches").waitFor();
  assert.equal(await page.getByLabel("Received longer ago than").inputValue(), "1h");
  assert.deepEqual(page.errors, []);
});

test("a record opens in place: what we know beside what the provider said", { skip }, async () => {
  const { keys } = await world.read("/v1/keys?state=unknown&contested=true");
  const page = await world.logIn("operator");
  await at(page, "unknown");
  await page.getByRole("link", { name: keys[0].ref.slice(0, 8) }).click();
  const ours = group(page, "What we know");
  const theirs = group(page, "What the provider said");
  await ours.getByText("its request was sent, or may have been").waitFor();
  await ours.getByText("not stored: if it was not done, the client's next retry runs it").waitFor();
  await theirs.getByText("bank was asked: “It was done” (status 200)").waitFor();
  await theirs.getByText("given up: ").waitFor();
  assert.ok(page.url().includes(`open=${keys[0].ref}`));
  const choices = group(page, "What you can do");
  await choices.getByText("nothing runs under this key until the gateway forgets the key").first().waitFor();
  assert.equal(await choices.getByRole("button", { name: "It was not done" }).count(), 0, "evidence says that it ran");
  const [left, right] = [await ours.boundingBox(), await theirs.boundingBox()];
  assert.ok(left.y === right.y && right.x > left.x, "side by side");
  await page.setViewportSize({ width: 900, height: 800 });
  const [above, below] = [await ours.boundingBox(), await theirs.boundingBox()];
  assert.ok(below.y > above.y && below.x === above.x, "one below the other");
  await page.getByRole("link", { name: keys[0].ref.slice(0, 8) }).click();
  await ours.waitFor({ state: "detached" });
  const mute = (await world.read("/v1/keys?state=unknown&operation=mute")).keys[0].ref;
  await page.getByRole("link", { name: mute.slice(0, 8) }).click();
  await theirs.getByText("mute ✗ does not answer; last failure").waitFor();
  await theirs.getByText("mute was asked: no answer").waitFor();
  await choices.getByText("a customer pays twice").waitFor();
  assert.deepEqual(page.errors, []);
  const viewer = await world.logIn("viewer");
  await at(viewer, `unknown?open=${keys[0].ref}`);
  await group(viewer, "What the provider said").getByText("withheld from your role").first().waitFor();
  assert.deepEqual(viewer.errors, []);
});

test("a record that is decided in place stays there, and so does a colleague's form", { skip }, async () => {
  const { ref } = (await listed("/plain", "unknown")).keys[0];
  const [first, second] = [await world.logIn("operator"), await world.logIn("operator")];
  for (const page of [first, second]) {
    await at(page, `unknown?open=${ref}`);
    await page.getByRole("button", { name: "It was done" }).click();
    await page.getByLabel("What you saw").fill("ch_1 in the books");
    await page.getByLabel("Reason").fill("seen by hand");
    await page.getByLabel("Status").fill("201");
    await page.getByLabel("Body", { exact: true }).fill('{"id":"ch_1"}');
  }
  await first.getByRole("button", { name: "Complete it" }).click();
  await first.getByRole("status").getByText("Done.").waitFor();
  await group(first, "What we know").getByText("It has ended with status 201").waitFor();
  await second.getByRole("alert").getByText("The record has changed since you opened this").waitFor();
  assert.equal(await second.getByLabel("What you saw").inputValue(), "ch_1 in the books");
  await first.getByRole("link", { name: ref.slice(0, 8) }).click();
  await group(first, "No provider").waitFor({ state: "detached" });
  assert.deepEqual([...first.errors, ...second.errors], []);
});

test("a job lets thirty records run again; what came after the count is no part of it", { skip }, async () => {
  const refs = await loseMany("/thirty", 30);
  const page = await world.logIn("operator");
  await at(page, `unknown?operation=${of("/thirty")}`);
  await page.getByRole("link", { name: "Decide about all unknown records" }).click();
  await page.getByText(`All unknown records with operation ${operation("/thirty")}`).waitFor();
  await provable("/thirty");
  await fillRelease(page, "/thirty", 30, 100);
  assert.equal(await page.getByRole("listitem").locator(".ref").count(), 10, "examples");
  await page.getByText("The job lasts about 1 s").waitFor();
  assert.ok(await send(page).isDisabled(), "the number is not typed");
  await page.getByLabel("Type the number of records").fill("29");
  assert.ok(await send(page).isDisabled(), "another number");
  await page.getByLabel("Type the number of records").fill("30");
  await accessible(page);
  const later = await lose("/thirty", "later");
  await send(page).click();
  await page.getByRole("status").getByText("The job has begun").waitFor();
  await page.getByRole("link", { name: "See what becomes of each" }).click();
  await page.getByText("30 decided, 0 refused, 0 left of 30").waitFor();
  await page.getByText("✓ ended").waitFor();
  const results = page.getByRole("table", { name: "Results" });
  await results.getByRole("row").nth(30).waitFor();
  assert.equal(await results.getByText("✓ decided").count(), 30);
  await accessible(page);
  const { keys } = await listed("/thirty", "failed_retryable");
  assert.deepEqual(keys.map((one) => one.ref).sort(), [...refs].sort());
  assert.equal((await world.read(`/v1/keys/${later}`)).state, "unknown");
  await results.getByRole("link").first().click();
  await page.getByRole("heading", { name: "Operation" }).waitFor();
  await page.getByText("ticket 4711 (job").waitFor();
  assert.deepEqual(page.errors, []);
});

test("a look before the end of the last lease cannot release, and the form says so", { skip }, async () => {
  await loseMany("/early", 1);
  const page = await world.logIn("operator");
  await at(page, `unknown/all?operation=${of("/early")}`);
  await page.getByRole("button", { name: "Count the records that match" }).click();
  await decide(page).getByRole("button", { name: "None of these was done" }).click();
  await page.getByRole("button", { name: "I start looking now" }).click();
  await page.getByRole("alert").getByText("when the last attempt could still send").waitFor();
  assert.ok(await page.getByLabel("What you saw").isDisabled());
  await accessible(page);
  assert.deepEqual(page.errors, []);
});

test("two operators at the same records: an old count decides nothing", { skip }, async () => {
  await loseMany("/two", 3);
  await provable("/two");
  const [first, second] = [await world.logIn("operator"), await world.logIn("operator")];
  for (const page of [first, second]) await fillRelease(page, "/two", 3, 100);
  const { ref, fence } = (await listed("/two", "unknown")).keys[0];
  const seen = ["--as", "completed", "--status", "201", "--evidence", "seen", "--reason", "by hand"];
  await world.idem("keys", "resolve", ref, "--fence", String(fence), ...seen);
  await send(first).click();
  await first.getByRole("alert").getByText("Now 2 match, not 3. Nothing was begun").waitFor();
  assert.ok(await send(first).isDisabled());
  assert.equal((await listed("/two", "unknown")).keys.length, 2, "nothing was decided");
  assert.equal(await first.getByLabel("What you saw").inputValue(), "the list of today has none of them");
  await first.locator("form").getByRole("button", { name: "Count again" }).click();
  await first.getByRole("status").getByText("2 unknown records").waitFor();
  await send(first).click();
  await first.getByRole("status").getByText("The job has begun").waitFor();
  await until(async () => (await listed("/two", "unknown")).keys.length === 0);
  await send(second).click();
  await second.getByRole("alert").getByText("Now 0 match, not 3. Nothing was begun").waitFor();
  await second.locator("form").getByRole("button", { name: "Count again" }).click();
  await second.getByRole("status").getByText("0 unknown records").waitFor();
  assert.ok(await send(second).isDisabled());
  assert.equal((await listed("/two", "failed_retryable")).keys.length, 2);
  // A browser reports each answer of 409.
  assert.deepEqual([...first.errors, ...second.errors].filter((text) => !text.includes("409")), []);
});

test("a job that is refused says why, record by record", { skip }, async () => {
  const { keys } = await world.read("/v1/keys?state=unknown&contested=true");
  const page = await world.logIn("operator");
  await fillRelease(page, "", keys.length, 10, "charges");
  await page.getByText("The job refuses a record that does not fit").click();
  await page.getByText("it is contested: evidence says that it ran").waitFor();
  await accessible(page);
  await send(page).click();
  await page.getByRole("link", { name: "See what becomes of each" }).click();
  await page.getByText(`0 decided, ${keys.length} refused, 0 left of ${keys.length}`).waitFor();
  await page.getByText("1 record was refused, and nothing about it changed").waitFor();
  await page.getByRole("table", { name: "Results" }).getByText(/refused: .*evidence says that it ran/).waitFor();
  assert.equal((await world.read(`/v1/keys/${keys[0].ref}`)).state, "unknown");
  await accessible(page);
  assert.deepEqual(page.errors, []);
});

test("one answer completes all that were done", { skip }, async () => {
  await loseMany("/done", 2);
  const page = await world.logIn("operator");
  await at(page, `unknown/all?scope=acme&operation=${of("/done")}`);
  await page.getByRole("button", { name: "Count the records that match" }).click();
  await decide(page).getByRole("button", { name: "All of these were done" }).click();
  await page.getByLabel("What you saw").fill("all are in the list");
  await page.getByLabel("Reason").fill("ticket 4712");
  await page.getByLabel("Status").fill("402");
  await page.getByText('choose "All of these were tried, and refused for good"').waitFor();
  await page.getByLabel("Status").fill("201");
  await page.getByLabel("Body", { exact: true }).fill('{"done":true}');
  const complete = page.getByRole("button", { name: "Complete them: 2" });
  for (const answer of [
    { status: 200, contentType: "application/json", body: "{}" },
    { status: 504, contentType: "text/html", body: "<p>" },
  ]) {
    await page.route("**/v1/jobs", (route) => route.fulfill(answer), { times: 1 });
    await complete.click();
    await page.getByRole("alert").getByText("It is not known whether your order was carried out").waitFor();
    await page.getByText("See first whether the job is among the Jobs").waitFor();
  }
  await complete.click();
  await page.getByRole("link", { name: "See what becomes of each" }).click();
  await page.getByText("2 decided, 0 refused, 0 left of 2").waitFor();
  const { keys } = await listed("/done", "completed");
  assert.deepEqual(keys.map((one) => one.response_status), [201, 201]);
});

test("an operator cancels a slow job: what was decided stays, and the rest is unknown", { skip }, async () => {
  await loseMany("/slow", 20);
  await provable("/slow");
  const page = await world.logIn("operator");
  await fillRelease(page, "/slow", 20, 1);
  await page.getByText("The job lasts about 20 s").waitFor();
  await send(page).click();
  await page.getByRole("link", { name: "See what becomes of each" }).click();
  await page.getByRole("table", { name: "Results" }).getByText("✓ decided").first().waitFor();
  const viewer = await world.logIn("viewer");
  await at(viewer, "jobs");
  await viewer.getByRole("row").filter({ hasText: "running" }).getByRole("link").click();
  await viewer.getByText("Cancelling needs the role operator; you have the role viewer.").waitFor();
  assert.equal(await viewer.getByRole("button", { name: "Cancel the job" }).count(), 0);
  await page.getByText("that are left stay as they are").waitFor();
  await page.getByLabel("Reason").fill("wrong list");
  await page.getByRole("button", { name: "Cancel the job" }).click();
  await page.getByRole("status").getByText("What was decided stays").waitFor();
  await page.getByText("– cancelled: what was decided stays").waitFor();
  const [released, unknown] = await Promise.all(
    ["failed_retryable", "unknown"].map(async (state) => (await listed("/slow", state)).keys.length),
  );
  assert.ok(released > 0 && unknown > 0 && released + unknown === 20, `${released} and ${unknown}`);
  await page.getByText(`${released} decided, 0 refused, ${unknown} left of 20`).waitFor();
  assert.deepEqual([...page.errors, ...viewer.errors], []);
});

test("a viewer and a supporter may not decide about many", { skip }, async () => {
  for (const role of ["viewer", "support"]) {
    const page = await world.logIn(role);
    await at(page, `unknown?operation=${of("/slow")}`);
    await page.getByText(`Deciding needs the role operator; you have the role ${role}.`).waitFor();
    await at(page, `unknown/all?operation=${of("/slow")}`);
    await page.getByText(`Deciding needs the role operator; you have the role ${role}.`).waitFor();
    assert.equal(await page.getByRole("button", { name: "Count" }).count(), 0);
    assert.deepEqual(page.errors, []);
  }
  const operator = await world.logIn("operator");
  await at(operator, "unknown/all?older_than=1h");
  await operator.getByText("nobody decides about a whole store by accident").waitFor();
});

test("no rule of axe is broken, and nothing is wider than the window", { skip }, async () => {
  const { keys } = await world.read("/v1/keys?state=unknown&contested=true");
  const { jobs } = await world.read("/v1/jobs");
  for (const theme of ["light", "dark"]) {
    for (const width of [1440, 360]) {
      const page = await world.logIn("operator", { theme, width });
      const all = `unknown/all?operation=${of("/slow")}`;
      for (const place of ["unknown", `unknown?open=${keys[0].ref}`, all, "jobs", `jobs/${jobs[0].job}`]) {
        await at(page, place);
        await page.getByRole("heading", { name: /^(Unknown|Jobs)$/ }).waitFor();
        if (place.includes("open=")) await group(page, "What we know").waitFor();
        await page.waitForFunction(() => document.querySelector(".loading") === null);
        await accessible(page);
        await fits(page);
      }
      await at(page, all);
      await page.getByRole("button", { name: "Count the records that match" }).click();
      await decide(page).getByRole("button", { name: "All of these were done" }).click();
      await accessible(page);
      await fits(page);
      assert.deepEqual(page.errors, []);
      await page.context().close();
    }
  }
});

test("where jobs need several people, the order waits for another one", { skip }, async () => {
  await restart("approvals: { jobs: 2 }\n");
  await loseMany("/approved", 1);
  await provable("/approved");
  const page = await world.logIn("operator");
  await fillRelease(page, "/approved", 1, 10);
  await send(page).click();
  await page.getByRole("status").getByText("Nothing is done yet. Another operator must approve the order.").waitFor();
  const link = await page.getByRole("link", { name: "See the order" }).getAttribute("href");
  assert.match(link, /^#\/approvals\/[0-9a-f]{32}$/);
  assert.equal((await listed("/approved", "unknown")).keys.length, 1);
  assert.deepEqual(page.errors, []);
});

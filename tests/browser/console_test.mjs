// The console as an operator uses it, on the store of IDEM_BROWSER_STORE.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { World, accessible, fits, missing } from "./support.mjs";

const skip = missing();
let world;
before(async () => {
  if (skip) return;
  world = await World.begin(process.env.IDEM_BROWSER_STORE);
  assert.equal((await world.charge("done-1")).status, 201);
  assert.equal((await world.charge("lost-1", "drop-after")).status, 502);
});
after(() => world?.end());

const at = (page, place) => page.goto(`${world.admin}/#/${place}`);
const unknown = () => world.only("unknown");

test("the address of idem console logs in once", { skip }, async () => {
  const address = (await world.idem("console")).stdout.trim();
  const page = await world.open();
  await page.goto(address);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  assert.ok(!page.url().includes("code="), "the code has left the address");
  await page.locator(".who").getByText("operator-ada (operator)").waitFor();
  // A browser reports the answer to the question who is logged in, before anybody is.
  assert.deepEqual(page.errors.filter((text) => !text.includes("401")), []);
  const second = await world.open();
  await second.goto(address);
  await second.getByText("The code is not known").waitFor();
  await accessible(second);
});

// Among the first, because on a slow machine its time to be too early is over soon.
test("a look that is too early releases nothing, and must be repeated", { skip }, async () => {
  const page = await world.logIn("operator");
  await at(page, `operation/${await unknown()}`);
  await page.getByRole("button", { name: "It was not done" }).click();
  await page.getByText("a customer pays twice").waitFor();
  const release = page.getByRole("button", { name: "Let it run again" });
  assert.ok(await page.getByLabel("What you saw").isDisabled(), "what was seen before does not count");
  await page.getByRole("button", { name: "I start looking now" }).click();
  await page.getByText("You started to look at").waitFor();
  await page.getByLabel("What you saw").fill("the books have no such charge");
  await page.getByLabel("Reason").fill("asked by phone");
  await release.click();
  await page.getByRole("alert").getByText("Too early until").waitFor();
  await page.getByRole("button", { name: "I start looking now" }).waitFor();
  assert.equal(await page.getByLabel("What you saw").inputValue(), "", "what was seen then proves nothing later");
  assert.ok(await release.isDisabled());
  await accessible(page);
  await unknown();
  await page.getByRole("button", { name: "Leave it as it is" }).click();
  await page.getByRole("button", { name: "It was done" }).waitFor();
});

test("a wrong token is refused in words, and the session outlives a reload of the page", { skip }, async () => {
  const page = await world.open();
  await page.goto(`${world.admin}/`);
  await page.getByLabel("Token").fill("idem_wrong");
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("alert").getByText("The token is not known").waitFor();
  await page.getByLabel("Token").fill(world.tokens.viewer);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.reload();
  await page.locator(".who").getByText("viewer-ada (viewer)").waitFor();
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByLabel("Token").waitFor();
  await page.reload();
  await page.getByLabel("Token").waitFor();
});

test("the overview says what needs a human and leads there", { skip }, async () => {
  const page = await world.logIn("operator");
  const need = page.getByRole("listitem").filter({ hasText: "1 unknown record is left to operators" });
  await need.getByText("Money").waitFor();
  await need.getByText("the oldest unknown record").waitFor();
  await need.getByRole("link", { name: "Look at the unknown records" }).click();
  await page.getByRole("heading", { name: "Unknown", exact: true }).waitFor();
  await page.waitForFunction(() => document.title === "Unknown · Idem");
  await page.getByText((await unknown()).slice(0, 8)).first().waitFor();
  assert.deepEqual(page.errors, []);
});

test("the overview shows whether it helps, over an hour and a day", { skip }, async () => {
  assert.equal((await world.charge("done-1")).status, 201);
  const page = await world.logIn("viewer");
  const helps = page.getByRole("region", { name: "What Idem prevents, and what it costs" });
  await helps.getByText(/of \d+ requests with a key were repeats that did not run a second time: .*1 answered from the store/).waitFor();
  await helps.getByText("The store answered all the time").waitFor();
  await helps.locator("canvas").nth(5).waitFor();
  await helps.getByRole("figure").filter({ hasText: "Unknown records" }).getByText("unknown: 1 now").waitFor();
  await helps.getByRole("link", { name: "last day" }).click();
  assert.ok(page.url().endsWith("#/overview?span=day"));
  await helps.getByText("1 answered from the store").waitFor();
  await helps.locator("canvas").nth(5).waitFor();
  assert.deepEqual(page.errors, []);
});

test("a client that misuses keys is named, with what differs", { skip }, async () => {
  for (let i = 1; i <= 6; ++i) assert.equal((await world.charge("done-1", "", i)).status, 422);
  const page = await world.logIn("operator");
  const need = page.getByRole("listitem").filter({ hasText: "6 requests in the last 10 minutes were refused" });
  await need.getByText("Client", { exact: true }).waitFor();
  await need.getByRole("link").click();
  await page.getByRole("heading", { name: "Retries" }).waitFor();
  const sender = page.getByRole("table", { name: "Clients" }).getByRole("row").nth(1);
  await sender.getByText("127.0.0.1").waitFor();
  assert.deepEqual((await sender.getByRole("cell").allTextContents()).slice(0, 3), ["6", "acme", "127.0.0.1"]);
  await page.getByRole("cell").getByRole("link").first().click();
  await page.getByRole("region", { name: "What happened" }).getByText("Retry from 127.0.0.1: misuse: another request under the key, refused (status 422)").first().waitFor();
  assert.deepEqual(page.errors, []);
  const viewer = await world.logIn("viewer");
  await at(viewer, "retries");
  await viewer.getByText("Retries need the role support").waitFor();
  assert.deepEqual(viewer.errors, []);
});

test("a record is found by its key and by its reference, and by no wrong one", { skip }, async () => {
  const page = await world.logIn("support");
  const ref = await world.only("completed");
  const { operation } = await world.read(`/v1/keys/${ref}`);
  await at(page, "find?state=unknown"); // A key is looked for in all states.
  await page.getByLabel("Reference or key").fill("done-1");
  await page.getByLabel("Scope").fill("acme");
  await page.getByLabel("Operation").fill(operation);
  await page.getByRole("button", { name: "Find" }).click();
  await page.getByRole("row").filter({ hasText: ref.slice(0, 8) }).getByRole("link").click();
  await page.getByText("It has ended with status 201. Each retry gets that answer.").waitFor();
  assert.ok(page.url().includes(ref));
  await at(page, "find");
  await page.getByLabel("Reference or key").fill("done-2");
  await page.getByLabel("Scope").fill("acme");
  await page.getByLabel("Operation").fill(operation);
  await page.getByRole("button", { name: "Find" }).click();
  await page.getByText("No record of this key").waitFor();
  await page.getByLabel("Reference or key").fill(ref);
  await page.getByRole("button", { name: "Find" }).click();
  await page.getByRole("region", { name: "Stored answer" }).getByText("201").waitFor();
  await page.getByText('"amount":1250').waitFor();
  assert.deepEqual(page.errors, []);
});

test("each role sees and may do what is its own", { skip }, async () => {
  const completed = await world.only("completed");
  for (const [role, sees, decides] of [["viewer", false, false], ["support", true, false], ["operator", true, true]]) {
    const page = await world.logIn(role);
    await at(page, `operation/${completed}`);
    await page.getByRole("region", { name: "Stored answer" }).getByText("201").waitFor();
    assert.equal(await page.getByText('"amount":1250').count(), sees ? 1 : 0, role);
    assert.equal(await page.getByText("Fields and body need the role support").count(), sees ? 0 : 1, role);
    await page.getByText("Only a stored 5xx can be dropped").waitFor();
    await at(page, `operation/${await unknown()}`);
    await page.getByText("The work may have run").waitFor();
    assert.equal(await page.getByRole("button", { name: "It was done" }).count(), decides ? 1 : 0, role);
    assert.equal(await page.getByText("Deciding needs the role operator").count(), decides ? 0 : 1, role);
    assert.deepEqual(page.errors, []);
    await page.context().close();
  }
});

test("no rule of axe is broken, and nothing is wider than the window", { skip }, async () => {
  const ref = await unknown();
  for (const theme of ["light", "dark"]) {
    for (const width of [1440, 360]) {
      const page = await world.logIn("operator", { theme, width });
      for (const [place, heading] of [["overview", "Overview"], ["find", "Find"], ["retries", "Retries"], ["audit", "Audit"], ["system", "System"], [`operation/${ref}`, "Operation"]]) {
        await at(page, place);
        await page.getByRole("heading", { name: heading, exact: true }).waitFor();
        await page.waitForFunction(() => document.querySelector(".loading") === null);
        if (place === "overview") await page.locator(".chart canvas").first().waitFor();
        await accessible(page);
        await fits(page);
      }
      await page.getByRole("button", { name: "It was done" }).click();
      await page.getByLabel("Reason").waitFor();
      await accessible(page);
      await fits(page);
      assert.deepEqual(page.errors, []);
      await page.context().close();
    }
  }
});

test("the keyboard alone leads everywhere", { skip }, async () => {
  const page = await world.logIn("operator");
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await accessible(page);
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.keyboard.press("/");
  await page.getByRole("heading", { name: "Find" }).waitFor();
  await page.waitForFunction(() => document.activeElement?.id === "find");
  await page.keyboard.type(await unknown());
  await page.keyboard.press("Enter");
  await page.getByText("The work may have run").waitFor();
  await page.waitForFunction(() => document.activeElement?.tagName === "H1");
  await page.keyboard.press("g");
  await page.keyboard.press("o");
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  assert.deepEqual(page.errors, []);
});

test("no answer is guessed: what retries get is written and shown before it is stored", { skip }, async () => {
  const page = await world.logIn("operator");
  await at(page, `operation/${await unknown()}`);
  await page.getByRole("button", { name: "It was done" }).click();
  await page.getByLabel("What you saw").fill("x");
  await page.getByLabel("Reason").fill("y");
  const complete = page.getByRole("button", { name: "Complete it" });
  assert.equal(await page.getByLabel("Status").inputValue(), "");
  await page.getByText("Write a status").waitFor();
  await page.getByLabel("Status").fill("201");
  await page.getByText("Write the body").waitFor();
  await page.getByLabel("Body", { exact: true }).fill('{"id":');
  await page.getByText("The body is no JSON").waitFor();
  assert.ok(await complete.isDisabled());
  await page.getByLabel("Body", { exact: true }).fill('{"id":1}');
  await page.getByLabel("Further fields").fill("Location /v1/1");
  await page.getByText("is not a header field").waitFor();
  await page.getByLabel("Further fields").fill("content-type: text/plain");
  await page.getByText("in its own field").waitFor();
  await page.getByLabel("Further fields").fill("Location: /v1/1");
  await page.getByLabel("Status").fill("402");
  await page.getByText('choose "It was tried, and refused for good"').waitFor();
  assert.ok(await complete.isDisabled());
  await page.getByLabel("Status").fill("201");
  await page.getByText("Each retry gets exactly this").waitFor();
  await page.getByText('201\nContent-Type: application/json\nLocation: /v1/1\n\n{"id":1}').waitFor();
  assert.ok(await complete.isEnabled());
  // What comes from something in between says nothing about the order.
  for (const answer of [
    { status: 200, contentType: "text/html", body: "<p>Log in" },
    { status: 200, body: "" },
    { status: 200, contentType: "application/json", body: "{}" },
    { status: 502, contentType: "text/html", body: "<p>Bad gateway" },
    { status: 504, contentType: "application/json", body: "null" },
  ]) {
    await page.route("**/resolve", (route) => route.fulfill(answer), { times: 1 });
    await complete.click();
    await page.getByRole("alert").getByText("It is not known whether your order was carried out").waitFor();
    await page.getByText("Done. The record below").waitFor({ state: "detached" });
  }
  await unknown();
});

test("a code in the address asks before it replaces a login", { skip }, async () => {
  const page = await world.logIn("viewer");
  const address = (await world.idem("console")).stdout.trim();
  await page.evaluate((to) => {
    location.href = to;
  }, address);
  await page.getByRole("alert").getByText("This address may log you in as another person").waitFor();
  assert.ok(!page.url().includes("code="));
  await page.getByRole("button", { name: "Stay logged in" }).click();
  await page.locator(".who").getByText("viewer-ada (viewer)").waitFor();
  const again = (await world.idem("console")).stdout.trim();
  await page.evaluate((to) => {
    location.href = to;
  }, again);
  await page.getByRole("button", { name: "Log in with the address" }).click();
  await page.getByRole("status").getByText("You are logged in as operator-ada (operator).").waitFor();
  assert.deepEqual(page.errors, []);
});

test("a used code beside a good login is refused in words", { skip }, async () => {
  const address = (await world.idem("console")).stdout.trim();
  const first = await world.open();
  await first.goto(address);
  await first.getByRole("heading", { name: "Overview" }).waitFor();
  const page = await world.logIn("viewer");
  await page.evaluate((to) => {
    location.href = to;
  }, address);
  await page.getByRole("button", { name: "Log in with the address" }).click();
  await page.getByRole("status").getByText("You are still logged in as viewer-ada (viewer).").waitFor();
});

test("an address that is no good encoding shows a page", { skip }, async () => {
  const page = await world.logIn("viewer");
  await page.goto(`${world.admin}/#/%`);
  await page.reload();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
});

test("two operators at one record: the second one sees the first one's decision and repeats nothing", { skip }, async () => {
  const ref = await unknown();
  const first = await world.logIn("operator");
  const second = await world.logIn("operator");
  for (const page of [first, second]) {
    await at(page, `operation/${ref}`);
    await page.getByRole("button", { name: "It was done" }).click();
    await page.getByLabel("What you saw").fill("charge ch_1 in the books");
    await page.getByLabel("Reason").fill("seen by hand");
    await page.getByLabel("Status").fill("201");
    await page.getByLabel("Body", { exact: true }).fill('{"id":"ch_1"}');
  }
  await first.getByRole("button", { name: "Complete it" }).click();
  await first.getByRole("status").getByText("Done.").waitFor();
  await first.getByText("It has ended with status 201").waitFor();
  await first.getByText(/^Evidence of operator:operator-ada about attempt \d+: unknown → completed$/).waitFor();
  // Its page follows the record below the open form, which sends nothing any more.
  await second.getByText("It has ended with status 201").waitFor();
  await second.getByRole("alert").getByText("The record has changed since you opened this").waitFor();
  assert.ok(await second.getByRole("button", { name: "Complete it" }).isDisabled());
  assert.equal(await second.getByLabel("What you saw").inputValue(), "charge ch_1 in the books");
  const retry = await world.charge("lost-1");
  assert.equal(retry.status, 201);
  assert.equal(await retry.text(), '{"id":"ch_1"}');
  assert.deepEqual([...first.errors, ...second.errors], []);
});

test("the audit has the decision, and says whether its chain is whole", { skip }, async () => {
  const page = await world.logIn("support");
  await page.getByRole("link", { name: "Audit" }).click();
  await page.getByRole("row").filter({ hasText: "keys.resolve" }).filter({ hasText: "seen by hand" }).first().waitFor();
  await page.getByLabel("What").fill("no.such");
  await page.getByRole("button", { name: "Show" }).click();
  await page.getByText("No line matches").waitFor();
  await page.getByRole("button", { name: "Verify all lines" }).click();
  await page.getByRole("status").getByText(/^No: all \d+ lines are as they were written/).waitFor();
  assert.deepEqual(page.errors, []);
  const viewer = await world.logIn("viewer");
  await at(viewer, "audit");
  await viewer.getByText("The audit needs the role support").waitFor();
  await at(viewer, "system");
  await viewer.getByText("Settings need the role support").waitFor();
  assert.deepEqual(viewer.errors, []);
});

test("an edited file is shown as a difference before an operator applies it", { skip }, async () => {
  const page = await world.logIn("operator");
  await page.getByRole("link", { name: "System" }).click();
  await page.getByText("The file and the settings that apply are the same").waitFor();
  await page.getByRole("row").filter({ hasText: "upstream" }).getByText("✓ answers").waitFor();
  world.writeSettings("limits: { wait_max: 7s }\n");
  await page.reload();
  const row = page.getByRole("row").filter({ hasText: "limits.wait_max" });
  await row.getByText("7s").waitFor();
  await accessible(page);
  await page.getByLabel("Reason").fill("longer waits");
  await page.getByRole("button", { name: "Apply these settings" }).click();
  await page.getByRole("status").getByText("The settings of the file apply now").waitFor();
  await page.getByText("The file and the settings that apply are the same").waitFor();
  world.writeSettings("limits: { wait_max: 7s, no_such_limit: 1 }\n");
  await page.reload();
  await page.getByRole("alert").getByText("no_such_limit").waitFor();
  assert.equal(await page.getByRole("button", { name: "Apply these settings" }).count(), 0);
  world.writeSettings();
});

test("text of clients is text, whatever it looks like", { skip }, async () => {
  const page = await world.logIn("operator");
  await world.charge("<img src=x onerror=alert(1)>");
  await at(page, "find?scope=%3Cscript%3Ealert(1)%3C%2Fscript%3E");
  await page.getByText("No record matches").waitFor();
  assert.equal(await page.getByLabel("Scope").inputValue(), "<script>alert(1)</script>");
  assert.equal(await page.locator("img, main script").count(), 0);
  assert.deepEqual(page.errors, []);
});

test("a gateway that goes away is said to be away, and comes back by itself", { skip }, async () => {
  const page = await world.logIn("operator");
  await page.getByRole("heading", { name: "Records" }).waitFor();
  await world.gateway.kill();
  await page.getByRole("status").getByText("The gateway has not answered").waitFor();
  await page.getByRole("heading", { name: "Records" }).waitFor();
  await world.startGateway();
  // Its sessions were in its memory.
  await page.getByText("Your login has ended").waitFor();
});

// Messages and dead letters: the outbox of a service that uses the SQL face on PostgreSQL.
import assert from "node:assert/strict";
import http from "node:http";
import { after, before, test } from "node:test";

import { World, accessible, fits, missing } from "./support.mjs";

const skip = missing();
let world;

/** A destination that refuses everything for good until it is mended, and then counts what arrives. */
class Inbox {
  refuses = true;
  /** It gets the message, and its answer is lost. */
  cuts = false;
  /** It is busy for an hour. */
  isBusy = false;
  arrived = new Map();
  #server = http.createServer((request, response) => {
    request.resume();
    request.on("end", () => {
      const id = request.headers["webhook-id"];
      if (this.isBusy) return response.writeHead(503, { "Retry-After": "3600" }).end();
      if (!this.refuses) this.arrived.set(id, (this.arrived.get(id) ?? 0) + 1);
      if (this.cuts) return request.socket.destroy();
      response.writeHead(this.refuses ? 410 : 204).end();
    });
  });
  async open() {
    await new Promise((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${this.#server.address().port}/in`;
  }
  close() {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
const inbox = new Inbox();
let more;

/** So many messages, each in the transaction of a record's work. */
async function write(number, type, destination = "receipts") {
  await world.sql(`DO $$ DECLARE r record; BEGIN FOR i IN 1..${number} LOOP
    SELECT operation, fence, attempt INTO r FROM idem.reserve('acme', 'pay', '${destination}-${type}-' || i, 'bytes');
    PERFORM idem.enqueue(r.operation, r.fence, r.attempt, '${destination}', '${type}', json_build_object('n', i)::text);
    PERFORM idem.complete(r.operation, r.fence, r.attempt, 201);
  END LOOP; END $$`);
}
/** The messages in a state, once they are so many; of those, the ones that `meant` names. */
async function until(state, number, meant = () => true) {
  let messages = [];
  for (const end = Date.now() + 60_000; Date.now() < end; ) {
    ({ messages } = await world.read(`/v1/outbox?state=${state}&limit=1000`));
    messages = messages.filter(meant);
    if (messages.length === number) return messages;
  }
  assert.fail(`${messages.length} messages are ${state}, and not ${number}`);
}

before(async () => {
  if (skip) return;
  const url = await inbox.open();
  more = `destinations:
  - { name: receipts, url: "${url}", deduplicates: 1h }
  - { name: ledger, url: "${url}", deduplicates: 0s }
`;
  world = await World.begin("postgres", { more });
  await write(50, "paid");
  await write(1, "odd");
  await until("dead", 51);
});
after(async () => {
  await world?.end();
  inbox.close();
});

const at = (page, place) => page.goto(`${world.admin}/#/${place}`);

test("a burst of dead letters is a need, with its lag by destination and its history", { skip }, async () => {
  const page = await world.logIn("support");
  const need = page.getByRole("listitem").filter({ hasText: "51 dead letters to receipts" });
  await need.getByRole("link", { name: "Show the dead letters" }).click();
  await page.getByRole("heading", { name: "Messages", level: 1 }).waitFor();
  const lag = page.getByRole("table", { name: "Destinations" }).getByRole("row").filter({ hasText: "receipts" });
  await lag.getByText("✗ 51").waitFor();
  await page.getByText("Sending again and discarding need the role operator").waitFor();
  assert.equal(await page.getByRole("button", { name: "Send again" }).count(), 0);
  await page.getByRole("button", { name: "Next page" }).click();
  await page.waitForFunction(() => location.hash.includes("cursor="));
  await page.getByRole("row").filter({ hasText: "odd" }).getByRole("link").click();
  const happened = page.getByRole("region", { name: "What happened" });
  await happened.getByText("it answered 410").first().waitFor();
  await page.getByText('{"n" : 1}').waitFor();
  await page.getByText("Deciding needs the role operator").waitFor();
  assert.deepEqual(page.errors, []);
  // From the message to the record whose work wrote it, and from there to its messages alone.
  const message = page.url();
  const [{ operation_ref: record }] = await until("dead", 1, (one) => one.type === "odd");
  await page.getByRole("link", { name: record }).click();
  await page.getByRole("link", { name: "that its work wrote to the outbox" }).click();
  await page.getByText("Only those of the record").waitFor();
  await page.getByRole("row").filter({ hasText: "odd" }).waitFor();
  assert.equal(await page.getByRole("row").filter({ hasText: "receipts" }).filter({ hasText: "410" }).count(), 1);
  await accessible(page);
  await page.getByRole("navigation", { name: "States of messages" }).getByRole("link", { name: "delivered" }).click();
  await page.getByText("The work of this record wrote no such message").waitFor();
  await page.getByRole("link", { name: "Show those of all records" }).click();
  await page.waitForFunction(() => !location.hash.includes("operation_ref"));
  assert.deepEqual(page.errors, []);
  const viewer = await world.logIn("viewer");
  await viewer.goto(message);
  await viewer.getByText("The content needs the role support").waitFor();
  assert.deepEqual(viewer.errors, []);
});

test("one dead letter is discarded for good, after a look at what the order would do", { skip }, async () => {
  const odd = (await until("dead", 51)).find((one) => one.type === "odd");
  const page = await world.logIn("operator");
  await at(page, `messages/${odd.id}`);
  await page.getByRole("button", { name: "Discard for good…" }).click();
  await page.getByText("This cannot be taken back").waitFor();
  assert.equal(await page.getByRole("button", { name: "Discard for good", exact: true }).count(), 0, "first the look");
  await page.getByLabel("Reason").fill("nobody reads it");
  await page.getByRole("button", { name: "See what it would do" }).click();
  await page.getByRole("table", { name: "What the order does" }).getByText("is given up for good").waitFor();
  assert.equal((await until("dead", 51)).length, 51, "a look changes nothing");
  await accessible(page);
  await page.getByRole("button", { name: "Discard for good", exact: true }).click();
  await page.getByRole("status").getByText("Done: it is given up for good").waitFor();
  await page.getByText("An operator gave it up for good.").first().waitFor();
  await until("dead", 50);
  assert.deepEqual(page.errors, []);
});

test("50 dead letters are sent again at a rate, and each arrives once", { skip }, async () => {
  inbox.refuses = false;
  const page = await world.logIn("operator");
  await at(page, "messages?state=dead&destination=receipts");
  // Of many that are lost for good, the operator types how many.
  await page.getByRole("button", { name: "Discard for good…" }).click();
  await page.getByLabel("Reason").fill("a try");
  await page.getByRole("button", { name: "See what it would do" }).click();
  const discard = page.getByRole("button", { name: "Discard for good: 50" });
  await discard.waitFor();
  assert.ok(await discard.isDisabled());
  await page.getByLabel("Type the number of messages").fill("50");
  assert.ok(await discard.isEnabled());
  await page.getByRole("button", { name: "Leave them as they are" }).click();
  await page.getByRole("button", { name: "Send again…" }).click();
  await page.getByLabel("Reason").fill("the inbox is mended");
  await page.getByLabel("Messages a second").fill("100");
  await page.getByRole("button", { name: "See what it would do" }).click();
  const row = page.getByRole("table", { name: "What the order does" }).getByRole("row").nth(1);
  await row.waitFor();
  assert.deepEqual(await row.getByRole("cell").allTextContents(), ["50", "receipts", "paid", "is sent again"]);
  await page.getByText("last about 1 s").waitFor();
  // What was seen is not what would be ordered now.
  await page.getByLabel("I have looked at the destination").check();
  assert.equal(await page.getByRole("button", { name: "Send again: 50" }).count(), 0);
  await page.getByLabel("I have looked at the destination").uncheck();
  await accessible(page);
  await fits(page);
  // Another dead letter arrives meanwhile.
  inbox.refuses = true;
  await write(1, "late");
  await until("dead", 51);
  inbox.refuses = false;
  await page.getByRole("button", { name: "Send again: 50" }).click();
  await page.getByText("51 match now").waitFor();
  assert.equal(inbox.arrived.size, 0, "nothing is sent that was not seen");
  await page.getByRole("button", { name: "See what it would do" }).click();
  await page.getByRole("button", { name: "Send again: 51" }).click();
  await page.getByRole("status").getByText("A job decides about the 51").waitFor();
  await until("delivered", 51);
  assert.equal(inbox.arrived.size, 51);
  assert.deepEqual([...inbox.arrived.values()].filter((times) => times !== 1), []);
  await page.getByRole("link", { name: "See it" }).click();
  await page.getByRole("heading", { name: "Jobs", level: 1 }).waitFor();
  assert.deepEqual(page.errors, []);
});

test("no rule of axe is broken, and nothing is wider than the window", { skip }, async () => {
  const [one] = await until("delivered", 51);
  for (const theme of ["light", "dark"]) {
    for (const width of [1440, 360]) {
      const page = await world.logIn("operator", { theme, width });
      for (const place of ["messages?state=delivered", "messages?state=dead", `messages/${one.id}`]) {
        await at(page, place);
        await page.getByRole("heading", { name: "Messages", level: 1 }).waitFor();
        await page.waitForFunction(() => document.querySelector(".loading") === null);
        await accessible(page);
        await fits(page);
      }
      assert.deepEqual(page.errors, []);
      await page.context().close();
    }
  }
});

test("what may have arrived is sent again only after a look, and then arrives twice", { skip }, async () => {
  inbox.cuts = true;
  await write(1, "booked", "ledger");
  const [one] = await until("dead", 1, ({ type }) => type === "booked");
  inbox.cuts = false;
  const page = await world.logIn("operator");
  await at(page, `messages/${one.id}`);
  await page.getByText("It may have arrived: an attempt ended without an answer").waitFor();
  await page.getByRole("button", { name: "Send again…" }).click();
  await page.getByLabel("Reason").fill("the ledger is back");
  await page.getByRole("button", { name: "See what it would do" }).click();
  const table = page.getByRole("table", { name: "What the order does" });
  await table.getByText("stays a dead letter: it may have arrived").waitFor();
  assert.equal(await page.getByRole("button", { name: "Send again", exact: true }).count(), 0, "nothing would be sent");
  await page.getByText("If one did arrive, it arrives twice").waitFor();
  await page.getByLabel("I have looked at the destination").check();
  await page.getByRole("button", { name: "See what it would do" }).click();
  await table.getByText("is sent again").waitFor();
  await page.getByRole("button", { name: "Send again", exact: true }).click();
  await page.getByRole("status").getByText("Done: it is sent again").waitFor();
  await until("delivered", 1, ({ id }) => id === one.id);
  assert.equal(inbox.arrived.get(one.id), 2);
  await page.getByText("an operator looked at the destination, where it had not arrived").waitFor();
  assert.deepEqual(page.errors, []);
});

test("a message that waits for its time is sent now", { skip }, async () => {
  inbox.isBusy = true;
  await write(1, "slow");
  const [one] = await until("waiting", 1, (each) => each.type === "slow" && each.attempts === 1 && !each.in_flight);
  inbox.isBusy = false;
  const support = await world.logIn("support");
  await at(support, "messages?state=waiting&destination=receipts");
  await support.getByRole("row").filter({ hasText: "slow" }).getByRole("link").click();
  await support.getByText("Deciding needs the role operator; you have the role support").waitFor();
  const page = await world.logIn("operator");
  await page.goto(support.url());
  await page.getByText("failed, and is tried again later").waitFor();
  await page.getByText("This makes it due now").waitFor();
  await accessible(page);
  await page.getByRole("button", { name: "Send it now" }).click();
  await page.getByRole("status").getByText("It is due now").waitFor();
  await until("delivered", 1, ({ id }) => id === one.id);
  await page.getByText("You need do nothing").waitFor();
  assert.deepEqual([...support.errors, ...page.errors], []);
});

test("an order is about one type, and an answer that is lost is no success", { skip }, async () => {
  inbox.refuses = true;
  await write(1, "kept");
  await write(2, "moot");
  await until("dead", 3);
  const page = await world.logIn("operator");
  await at(page, "messages?state=dead");
  await page.getByRole("button", { name: "Discard for good…" }).click();
  await page.getByLabel("Reason").fill("nobody reads these");
  await page.getByLabel("Only of this type").fill("moot");
  const see = page.getByRole("button", { name: "See what it would do" });
  for (const answer of [{ status: 504, body: "<p>Too late" }, { status: 200, body: "{}" }]) {
    await page.route("**/v1/dlq/discard", (route) => route.fulfill(answer), { times: 1 });
    await see.click();
    await page.getByRole("alert").getByText("You asked what the order would do, which changes nothing").waitFor();
  }
  await see.click();
  const row = page.getByRole("table", { name: "What the order does" }).getByRole("row").nth(1);
  await row.waitFor();
  assert.deepEqual(await row.getByRole("cell").allTextContents(), ["2", "receipts", "moot", "is given up for good"]);
  for (const width of [360, 1440]) {
    await page.setViewportSize({ width, height: 800 });
    await accessible(page);
    await fits(page);
  }
  const order = page.getByRole("button", { name: "Discard for good: 2" });
  for (const answer of [{ status: 504, body: "<p>Too late" }, { status: 202, body: "{}" }]) {
    await page.route("**/v1/jobs", (route) => route.fulfill(answer), { times: 1 });
    await order.click();
    await page.getByRole("alert").getByText("It is not known whether your order was carried out").waitFor();
  }
  assert.equal((await until("dead", 3)).length, 3);
  assert.equal(await page.getByLabel("Reason").inputValue(), "nobody reads these");
  // As many are there, and one of them is another one.
  const [gone] = await until("dead", 2, ({ type }) => type === "moot");
  await world.idem("dlq", "discard", gone.id, "--reason", "it is first");
  await write(1, "moot", "ledger");
  await until("dead", 2, ({ type }) => type === "moot");
  await order.click();
  await page.getByRole("alert").getByText("have changed since you looked, and nothing was ordered: 2 match now").waitFor();
  assert.equal(await order.count(), 0);
  await see.click();
  await order.click();
  await page.getByRole("status").getByText("A job decides about the 2").waitFor();
  await until("discarded", 3, ({ type }) => type === "moot");
  await until("dead", 1, ({ type }) => type === "kept");
});

test("where a discard needs two people, the second one sees what it is about", { skip }, async () => {
  const answer = await fetch(`${world.admin}/v1/tokens`, {
    method: "POST",
    headers: { Authorization: `Bearer ${world.tokens.operator}`, "Content-Type": "application/json" },
    body: JSON.stringify({ name: "operator-bob", role: "operator" }),
  });
  world.tokens.second = (await answer.json()).token;
  await world.gateway.kill("SIGTERM");
  world.more = `${more}approvals: { discard: 2 }\n`;
  await world.startGateway();
  const [one] = await until("dead", 1);
  const first = await world.logIn("operator");
  await at(first, `messages/${one.id}`);
  await first.getByRole("button", { name: "Discard for good…" }).click();
  await first.getByLabel("Reason").fill("the receiver is gone");
  await first.getByRole("button", { name: "See what it would do" }).click();
  await first.getByRole("button", { name: "Discard for good", exact: true }).click();
  await first.getByRole("status").getByText("Nothing is done yet: another operator must approve it").waitFor();
  await first.getByRole("link", { name: "See it" }).click();
  await first.getByText("You have approved it already").waitFor();
  const other = await world.logIn("second");
  await other.goto(first.url());
  await other.getByText("dead, 1 attempt, last error: it answered 410: ✓ the same").waitFor();
  await other.getByText("The message is not sent any more").waitFor();
  await accessible(other);
  await other.getByLabel("Reason").fill("I asked them");
  await other.getByRole("button", { name: "Approve" }).click();
  await other.getByRole("status").getByText("It was carried out").waitFor();
  await until("dead", 0);
  await first.getByText("It is over: you need do nothing").waitFor();
  // The same of many: the number is compared.
  await write(2, "many");
  await until("dead", 2);
  await at(first, "messages?state=dead");
  await first.getByRole("button", { name: "Discard for good…" }).click();
  await first.getByLabel("Reason").fill("these, too");
  await first.getByRole("button", { name: "See what it would do" }).click();
  await first.getByRole("button", { name: "Discard for good: 2" }).click();
  await first.getByRole("link", { name: "See it" }).click();
  await other.goto(first.url());
  await other.getByText("2 match: ✓ as many as then").waitFor();
  await other.getByText("Each of 2 dead letters is not sent any more").waitFor();
  await write(1, "many-more");
  await until("dead", 3);
  await other.reload();
  await other.getByText("3 match: ✗ it has changed, and the gateway will refuse the order").waitFor();
  await other.getByLabel("Reason").fill("go on");
  await other.getByRole("button", { name: "Approve" }).click();
  await other.getByRole("alert").getByText("Now 3 match").waitFor();
  await other.getByText("order it anew").waitFor();
  await until("dead", 3);
});

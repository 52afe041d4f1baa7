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
  arrived = new Map();
  #server = http.createServer((request, response) => {
    request.resume();
    request.on("end", () => {
      const id = request.headers["webhook-id"];
      if (!this.refuses) this.arrived.set(id, (this.arrived.get(id) ?? 0) + 1);
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

/** So many messages, each in the transaction of a record's work. */
async function write(number, type) {
  await world.sql(`DO $$ DECLARE r record; BEGIN FOR i IN 1..${number} LOOP
    SELECT operation, fence, attempt INTO r FROM idem.reserve('acme', 'pay', '${type}-' || i, 'bytes');
    PERFORM idem.enqueue(r.operation, r.fence, r.attempt, 'receipts', '${type}', json_build_object('n', i)::text);
    PERFORM idem.complete(r.operation, r.fence, r.attempt, 201);
  END LOOP; END $$`);
}
/** The messages in a state, once they are so many. */
async function until(state, number) {
  let messages = [];
  for (const end = Date.now() + 60_000; Date.now() < end; ) {
    ({ messages } = await world.read(`/v1/outbox?state=${state}&limit=1000`));
    if (messages.length === number) return messages;
  }
  assert.fail(`${messages.length} messages are ${state}, and not ${number}`);
}

before(async () => {
  if (skip) return;
  const url = await inbox.open();
  world = await World.begin("postgres", { more: `destinations: [{ name: receipts, url: "${url}", deduplicates: 1h }]\n` });
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
  const lag = page.getByRole("table", { name: "Destinations" }).getByRole("row").nth(1);
  await lag.getByText("receipts").waitFor();
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
  const viewer = await world.logIn("viewer");
  await viewer.goto(page.url());
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
  await page.getByRole("button", { name: "Send again…" }).click();
  await page.getByLabel("Reason").fill("the inbox is mended");
  await page.getByLabel("Messages a second").fill("100");
  await page.getByRole("button", { name: "See what it would do" }).click();
  const row = page.getByRole("table", { name: "What the order does" }).getByRole("row").nth(1);
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
  // A browser reports the answer of 409.
  assert.deepEqual(page.errors.filter((text) => !text.includes("409")), []);
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

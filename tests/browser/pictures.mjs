// Makes the pictures of docs/images/: four bad nights, as the overview shows them. Run by hand, as the tests are:
//   IDEM_BIN_DIR=... IDEM_BUILD_DIR=... IDEM_BROWSER_MODULES=... node tests/browser/pictures.mjs [NAME...]
import http from "node:http";
import path from "node:path";
import { fileURLToPath } from "node:url";

import { World } from "./support.mjs";

const images = path.join(path.dirname(fileURLToPath(import.meta.url)), "../../docs/images");
const wanted = process.argv.slice(2);
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Requests of clients for so many seconds, some of them retries. */
async function traffic(world, seconds, also = async () => {}) {
  const until = Date.now() + seconds * 1_000;
  for (let number = 0; Date.now() < until; ++number) {
    await world.charge(`order-${Math.floor(number * 0.8)}`);
    await also(number);
    await pause(25);
  }
}

async function picture(name, store, make, options) {
  if (wanted.length > 0 && !wanted.includes(name)) return;
  const world = await World.begin(store, options);
  let clients;
  try {
    // Clients do not stop for a picture.
    clients = await make(world);
    const page = await world.logIn("operator", { width: 1180 });
    await page.getByRole("button", { name: "Close" }).click();
    await page.locator(".chart canvas").nth(5).waitFor();
    // The charts are drawn in the next frames.
    await pause(1_000);
    await page.screenshot({ path: path.join(images, `console-${name}.png`), clip: { x: 0, y: 0, width: 1180, height: 820 } });
    console.log(name);
    await world.letIn(true).catch(() => {});
  } finally {
    await clients?.rest.catch(() => {});
    await world.end();
  }
}

await picture("store-down", "postgres", async (world) => {
  await traffic(world, 45);
  await world.letIn(false);
  await traffic(world, 25);
  return { rest: traffic(world, 12) };
});

await picture("unknown", "sqlite", async (world) => {
  const lose = async (number) => {
    if (number % 30 === 29) await world.charge(`lost-${number}`, "drop-after");
  };
  await traffic(world, 60, lose);
  return { rest: traffic(world, 12) };
});

await picture("misuse", "sqlite", async (world) => {
  const misuse = async (number) => {
    if (number % 12 === 11) await world.charge("invoice-17", "", number);
  };
  await traffic(world, 60, misuse);
  return { rest: traffic(world, 12, misuse) };
});

/** A destination that refuses everything for good. */
const inbox = http.createServer((request, response) => {
  request.resume();
  request.on("end", () => response.writeHead(410).end());
});
await new Promise((resolve) => inbox.listen(0, "127.0.0.1", resolve));
await picture("dead-letters", "postgres", async (world) => {
  // A service that uses the SQL face, before the same store.
  const write = (number) => world.sql(`DO $$ DECLARE r record; BEGIN FOR i IN 1..7 LOOP
    SELECT operation, fence, attempt INTO r FROM idem.reserve('acme', 'pay', 'receipt-${number}-' || i, 'bytes');
    PERFORM idem.enqueue(r.operation, r.fence, r.attempt, 'receipts', 'paid', '{}');
    PERFORM idem.complete(r.operation, r.fence, r.attempt, 201);
  END LOOP; END $$`);
  let written = 0;
  const also = async (number) => {
    if (number % 40 === 39) await write((written += 1));
  };
  await traffic(world, 60, also);
  return { rest: traffic(world, 12, also) };
}, { more: `destinations: [{ name: receipts, url: "http://127.0.0.1:${inbox.address().port}/in", deduplicates: 1h }]\n` });
inbox.closeAllConnections();
inbox.close();

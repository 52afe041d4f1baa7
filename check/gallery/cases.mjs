// A small second judge, for the selftest only: it finds for each case of the tester whether a server fails it, so that
// gallery.json is what the servers do and not what we think that they do. The tester itself shares no line with it.
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";

import { abandon, bytes, connect, send } from "./client.mjs";

let serial = 0;
const unique = () => `selftest-${process.pid}-${(serial += 1)}`;
const slow = (ms) => [["X-Delay-Ms", ms]];
const refused = ({ status }) => status >= 400 && status < 500;
const made = ({ status }) => status >= 200 && status < 300;

/** What a case needs: a server, and requests of one operation. */
class Operation {
  constructor(server) {
    this.server = server;
    this.key = unique();
    this.order = unique();
  }

  request({ amount = "12", body, key = this.key, lines, more = [], tenant = "check", ...rest } = {}) {
    const keys = lines ?? (key === null ? [] : [["Idempotency-Key", key]]);
    const text = body ?? `{"amount": ${amount}, "order": "${this.order}"}`;
    return { headers: [["X-Tenant-Id", tenant], ...keys, ...more], body: text, ...rest };
  }

  send(change, at) {
    return send(this.server.port, this.request(change), at);
  }

  /** How many payments `act` made. */
  async effects(act) {
    const before = await this.count();
    await act();
    return (await this.count()) - before;
  }

  async count() {
    return JSON.parse((await send(this.server.port, { method: "GET", path: "/ledger" })).body).count;
  }

  /** Sends until the answer is neither "still running" nor lost; nothing: it never was. */
  async settle() {
    for (let tries = 0; tries < 40; tries += 1) {
      const answer = await this.send();
      if (answer.status !== 409 && !answer.lost) return answer;
      await sleep(100);
    }
    return undefined;
  }

  /** All at once, on connections that are there already. */
  async race(changes) {
    const sockets = await Promise.all(changes.map(() => connect(this.server.port)));
    return Promise.all(changes.map((change, at) => this.send(change, sockets[at])));
  }
}

const id = (answer) => /"id":"([^"]+)"/.exec(answer.body.replaceAll(" ", ""))?.[1];

async function replay(one) {
  const found = [];
  let [first, second] = [];
  const effects = await one.effects(async () => {
    first = await one.send();
    second = await one.send();
  });
  if (effects !== 1) return ["replay.effect"];
  const other = ["content-type", "location"].some((name) => first.headers[name] !== second.headers[name]);
  if (first.status !== second.status || first.body !== second.body) found.push("replay.identical");
  if (other) found.push("replay.headers");
  if (Number(second.headers["content-length"]) !== Buffer.byteLength(second.body)) found.push("replay.length");
  if (second.headers["set-cookie"]) found.push("replay.cookie");
  const { profile } = one.server;
  if (["stripe", "acp"].includes(profile) && !second.headers["idempotent-replayed"]) found.push("replay.marker");
  if (profile === "acp" && [first, second].some(({ headers }) => headers["idempotency-key"] !== one.key)) {
    found.push("key.echo");
  }
  return found;
}

async function misuseBody(one) {
  await one.send();
  let second;
  const effects = await one.effects(async () => {
    second = await one.send({ amount: "13" });
  });
  return !refused(second) || effects > 0;
}

const misuse = (change) => async (one) => {
  const first = await one.send();
  const second = await one.send(change);
  return made(second) && id(second) === id(first);
};

const race =
  (n, change = () => ({})) =>
  async (one) =>
    (await one.effects(() => one.race(Array.from({ length: n }, (_, at) => change(at))))) > 1;

const during = (act) => async (one) => {
  const first = one.send({ more: slow(600) });
  await sleep(200);
  const second = await act(one);
  return [await first, second];
};

/** A success that is not the first one's answer, although nothing else ran. */
async function inflightRetry(one) {
  let [first, second] = [];
  const effects = await one.effects(async () => {
    [first, second] = await during((other) => other.send())(one);
  });
  const silent = second.status === 409 && !second.headers["retry-after"];
  if (one.server.profile === "acp" && silent) return ["retry.advice"];
  return effects === 1 && made(second) && second.body !== first.body ? ["inflight.retry"] : [];
}

const inflightMisuse = during((one) => one.send({ amount: "13" }));

async function slowFirst(one) {
  return (
    (await one.effects(async () => {
      const all = [one.send({ more: slow(1500) })];
      for (let at = 0; at < 12; at += 1) {
        await sleep(150);
        all.push(one.send());
      }
      await Promise.all(all);
    })) > 1
  );
}

/** `workMs`: a payment of the request that was left can come so late. */
const aborted =
  (leave, workMs = 0) =>
  async (one) => {
    let settled;
    const effects = await one.effects(async () => {
      await leave(one);
      const since = Date.now();
      settled = await one.settle();
      await sleep(Math.max(0, workMs + 200 - (Date.now() - since)));
    });
    return effects !== 1 || !settled || refused(settled);
  };

const whole = ({ head, body }) => Buffer.concat([head, body]);
const left = aborted((one) => {
  const all = bytes(one.request({ more: slow(1500) }));
  return abandon(one.server.port, whole(all), () => sleep(100));
}, 1500);
const firstByte = (socket) => once(socket, "data");
const reading = aborted((one) => abandon(one.server.port, whole(bytes(one.request())), firstByte));
const cut = (part) => aborted((one) => abandon(one.server.port, part(bytes(one.request())), () => sleep(100)));
const ambiguous = aborted((one) => one.send());

async function keys(one) {
  const found = [];
  const runs = async (name, key, lines) => {
    if (made(await new Operation(one.server).send({ key, lines }))) found.push(name);
  };
  const { profile } = one.server;
  if (profile === "ietf" && refused(await one.send({ key: `"${one.key}"` }))) found.push("key.quoted");
  if (profile !== "stripe") await runs("key.missing", null);
  await runs("key.empty", "");
  await runs("key.list", `"${unique()}", "${unique()}"`);
  await runs("key.twice", null, [
    ["Idempotency-Key", unique()],
    ["Idempotency-Key", unique()],
  ]);
  const long = await new Operation(one.server).send({ key: unique().padEnd(255, "x") });
  if (refused(long)) found.push("key.long");
  const other = await new Operation(one.server).send({ key: `${unique()}\xd0\xba\xd0\xbb` });
  if (other.status >= 500 || (profile === "ietf" && made(other))) found.push("key.nonascii");
  return found;
}

/** Whether two keys that should be two are one. */
const same = (first, second) => async (one) => {
  const a = await one.send({ key: first(one.key) });
  const b = await one.send({ key: second(one.key) });
  return made(a) && (b.status === 422 || id(a) === id(b));
};

async function otherTenant(one) {
  const first = await one.send();
  const second = await one.send({ tenant: "check-2" });
  return id(first) === id(second);
}

async function errorReplay(one) {
  const first = await one.send({ body: '{"amount":"none"}' });
  return (await one.send({ body: '{"amount":"none"}' })).status !== first.status;
}

async function errorRetry(one) {
  if (one.server.profile === "stripe") return false;
  let second;
  const effects = await one.effects(async () => {
    await one.send({ more: [["X-Fail", "503"]] });
    second = await one.send();
    await one.send();
  });
  return !made(second) || effects !== 1;
}

async function restarted(one) {
  let [first, second] = [];
  const effects = await one.effects(async () => {
    first = await one.send();
    await one.server.restart();
    second = await one.send();
  });
  return effects !== 1 || id(first) !== id(second);
}

/** The process ends once the payment is made and before it is answered, where a server lets that be seen. */
async function restartedWithin(one) {
  const effects = await one.effects(async () => {
    const before = await one.count();
    const first = one.send({ more: slow(800) }).catch(() => undefined);
    let over = false;
    first.then(() => (over = true));
    while (!over && (await one.count()) === before) await sleep(20);
    await one.server.restart();
    await first;
    await one.send({ more: slow(800) });
  });
  return effects > 1;
}

async function precision(one) {
  const first = await one.send({ amount: "9007199254740993" });
  const second = await one.send({ amount: "9007199254740992" });
  return !first.body.includes("9007199254740993") || !refused(second);
}

async function canonicalNumber(one) {
  if (one.server.profile !== "acp") return false;
  const first = await one.send({ amount: "12" });
  return id(await one.send({ amount: "1.20e+1" })) !== id(first);
}

async function canonicalOrder(one) {
  let [first, second] = [];
  const effects = await one.effects(async () => {
    first = await one.send();
    second = await one.send({ body: `{ "order":"${one.order}",\n"amount":12 }` });
  });
  return effects !== 1 || (one.server.profile === "acp" && id(first) !== id(second));
}

async function expiry(one) {
  const { retention } = one.server;
  if (!retention) return false;
  const first = await one.send();
  await sleep(retention * 0.7);
  const early = await one.send();
  await sleep(retention * 0.5);
  const late = await one.send();
  return id(first) !== id(early) || late.status >= 500 || id(late) === id(first);
}

/** A server that accepts no connection any more. */
const hasEnded = ({ code }) => code === "ECONNREFUSED";

/** The names of all cases that the server {port, profile, retention, restart} fails; one that ends fails the last. */
export async function judge(server) {
  const found = [];
  let current;
  const add = async (name, failed) => {
    current = name;
    if (await failed(new Operation(server))) found.push(name);
  };
  try {
    await judgeAll(server, found, add);
  } catch (error) {
    if (!hasEnded(error)) throw error;
    found.push(current);
  }
  return found;
}

async function judgeAll(server, found, add) {
  found.push(...(await replay(new Operation(server))));
  await add("misuse.body", misuseBody);
  await add("misuse.query", misuse({ path: "/payments?expand=all" }));
  await add("misuse.path", misuse({ path: "/refunds" }));
  await add("misuse.method", misuse({ method: "PUT" }));
  await add("race.two", race(2));
  await add("race.ten", race(10));
  await add("race.many", race(100));
  await add(
    "race.bodies",
    race(10, (at) => ({ amount: String(20 + at) })),
  );
  found.push(...(await inflightRetry(new Operation(server))));
  await add("inflight.misuse", async (one) => !refused((await inflightMisuse(one))[1]));
  await add("slow.first", slowFirst);
  await add("ambiguous.success", ambiguous);
  await add("abort.client", left);
  await add("abort.reading", reading);
  await add(
    "abort.body",
    cut(({ head, body }) => Buffer.concat([head, body.subarray(0, 5)])),
  );
  await add(
    "abort.head",
    cut(({ head }) => head.subarray(0, head.length - 10)),
  );
  found.push(...(await keys(new Operation(server))));
  const long = (end) => (key) => `${key.padEnd(999, "x")}${end}`;
  await add("key.truncated", same(long("a"), long("b")));
  await add(
    "key.case",
    same(
      (key) => `${key}abc`,
      (key) => `${key}ABC`,
    ),
  );
  await add("scope.other", otherTenant);
  await add("error.replay", errorReplay);
  await add("error.retry", errorRetry);
  await add("number.precision", precision);
  await add("canonical.order", canonicalOrder);
  await add("canonical.number", canonicalNumber);
  await add("expiry", expiry);
  await add("restart.replay", restarted);
  await add("restart.running", restartedWithin);
}

// The API that all peers protect: an order is paid, which takes some time, and the ledger counts it. No part of this
// file knows of keys.
import express from "express";

export class Failed extends Error {
  constructor(status) {
    super("failed");
    this.status = status;
  }
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

export class Shop {
  paid = 0;

  /** The work of one order. */
  async pay(request) {
    const failure = Number(request.get("X-Fail") ?? 0);
    if (failure !== 0) throw new Failed(failure);
    await pause(Number(request.get("X-Delay-Ms") ?? 20));
    this.paid += 1;
    return { id: `pay_${this.paid}`, amount: request.body.amount, order: request.body.order };
  }
}

/** The status and body of an answer: what a handler of the documentation's kind would send. */
export async function outcomeOf(work) {
  try {
    return { status: 201, body: await work() };
  } catch (error) {
    if (!(error instanceof Failed)) throw error;
    return { status: error.status, body: { error: "failed" } };
  }
}

export function newApp(shop) {
  const app = express();
  app.use(express.json());
  app.get("/ledger", (_, response) => response.json({ count: shop.paid }));
  return app;
}

export function invalid(request, response) {
  if (typeof request.body?.amount === "number") return false;
  response.status(422).json({ error: "invalid" });
  return true;
}

export function listen(app) {
  const server = app.listen(0, "127.0.0.1", () => console.log(`listening on http://127.0.0.1:${server.address().port}`));
}

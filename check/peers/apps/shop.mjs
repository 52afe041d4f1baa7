// The API that all peers protect: an order is paid, which takes some time, and the ledger counts it. No part of this
// file knows of keys. The ledger lies in the file LEDGER, where there is one, and outlives a restart.
import express from "express";
import { randomUUID } from "node:crypto";
import fs from "node:fs";

export class Failed extends Error {
  constructor(status) {
    super("failed");
    this.status = status;
  }
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

export class Shop {
  file = process.env.LEDGER;
  paid = this.file && fs.existsSync(this.file) ? fs.statSync(this.file).size : 0;

  /** The work of one order. */
  async pay(request) {
    const failure = Number(request.get("X-Fail") ?? 0);
    if (failure !== 0) throw new Failed(failure);
    const half = Number(request.get("X-Delay-Ms") ?? 20) / 2;
    await pause(half);
    this.paid += 1;
    if (this.file) fs.appendFileSync(this.file, ".");
    await pause(half);
    const id = `pay_${this.paid}`;
    return { id, amount: request.body.amount, order: request.body.order };
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

/** Sends an outcome: what was made has an address, and each answer sets a cookie of its own, as those of sessions. */
export function send(response, { status, body }) {
  if (body.id) decorate(response, body);
  response.status(status).json(body);
}
export const decorate = (response, { id }) => response.location(`/payments/${id}`).cookie("session", randomUUID());

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

/** On the port PORT, or on any. */
export function listen(app) {
  const server = app.listen(Number(process.env.PORT ?? 0), "127.0.0.1", () =>
    console.log(`listening on http://127.0.0.1:${server.address().port}`),
  );
}

// @node-idempotency/nestjs as its README sets it up: the module with a storage adapter, and the decorator on the
// controller. Keys are enforced, so that a request without one is refused. The store is memory, or Redis at REDIS.
// Decorators are called by hand, as this is no TypeScript.
import "reflect-metadata";
import { Body, Controller, Get, Headers, HttpException, Module, Post, Put, Res } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { Idempotent, NodeIdempotencyModule } from "@node-idempotency/nestjs";

import { Failed, Shop, decorate } from "./shop.mjs";

const shop = new Shop();
class Payments {
  async pay(body, headers, response) {
    if (typeof body?.amount !== "number") throw new HttpException({ error: "invalid" }, 422);
    const get = (name) => headers[name.toLowerCase()];
    try {
      const paid = await shop.pay({ get, body });
      decorate(response, paid);
      return paid;
    } catch (error) {
      throw error instanceof Failed ? new HttpException({ error: "failed" }, error.status) : error;
    }
  }
  put(...all) {
    return this.pay(...all);
  }
}
class Ledger {
  read() {
    return { count: shop.paid };
  }
}
class App {}

function route(type, name, decorator) {
  decorator(type.prototype, name, Object.getOwnPropertyDescriptor(type.prototype, name));
}
for (const name of ["pay", "put"]) {
  [Body(), Headers(), Res({ passthrough: true })].forEach((of, index) => of(Payments.prototype, name, index));
}
route(Payments, "pay", Post(["/payments", "/refunds"]));
route(Payments, "put", Put("/payments"));
route(Ledger, "read", Get("/ledger"));
Idempotent({ enforceIdempotency: true })(Payments);
Controller()(Payments);
Controller()(Ledger);
const storage = process.env.REDIS
  ? { adapter: "redis", options: { url: `redis://${process.env.REDIS}` } }
  : { adapter: "memory" };
Module({ imports: [NodeIdempotencyModule.forRootAsync({ storage })], controllers: [Payments, Ledger] })(App);

const app = await NestFactory.create(App, { logger: ["error"] });
await app.listen(Number(process.env.PORT ?? 0), "127.0.0.1");
console.log(`listening on ${await app.getUrl()}`);

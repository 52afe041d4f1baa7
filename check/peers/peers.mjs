// The middlewares and set-ups that run.mjs judges. `app` is a file of apps/; `gateway` are flags of `idem gateway` in
// front of apps/plain.mjs. `profile`: the document that it claims to follow; custom demands what is safe, and
// `required` that a request without a key does not run. `tenant`: its keys have a scope by X-Tenant-Id. `path` and
// `method`: where else the same body is accepted. `exact`: the API behind it keeps numbers beyond 2^53.
const gateway = ([preset, store]) => ({
  name: `idem gateway, ${preset}, ${store}`,
  store,
  gateway: ["--preset", preset],
  profile: preset === "lenient" ? "custom" : preset,
  exact: true, // It compares the bytes that arrive, before the API reads them.
  tenant: true,
  path: "/refunds",
  method: "PUT",
});

export const peers = [
  {
    name: "express-idempotency",
    module: "express-idempotency",
    store: "memory",
    app: "express_idempotency",
    path: "/refunds",
  },
  {
    name: "express-idempotency, Redis adapter",
    module: "express-idempotency",
    and: "express-idempotency-redis-adapter",
    store: "redis",
    app: "express_idempotency",
    path: "/refunds",
  },
  ...["memory", "redis"].map((store) => ({
    name: `@node-idempotency/nestjs, ${store}`,
    module: "@node-idempotency/nestjs",
    and: "@node-idempotency/core",
    store,
    app: "nest",
    profile: "ietf",
    path: "/refunds",
    method: "PUT",
  })),
  {
    name: "Powertools for AWS Lambda",
    module: "@aws-lambda-powertools/idempotency",
    store: "dynamodb",
    app: "powertools",
    required: true,
  },
  {
    name: "Restate",
    module: "@restatedev/restate-server",
    store: "its own",
    app: "restate",
    request: "/payments/pay",
    // An error that is not terminal makes the server try the work again by itself, until it succeeds.
    leaves: ["fails"],
  },
  { name: "pattern: SELECT, then INSERT", store: "postgres", app: "select_insert", required: true, path: "/refunds" },
  {
    name: "pattern: SET NX, lock of 30 s",
    store: "redis",
    app: "redis_set_nx",
    env: { LOCK_SECONDS: "30" },
    required: true,
    path: "/refunds",
  },
  {
    name: "pattern: SET NX, lock shorter than the work",
    store: "redis",
    app: "redis_set_nx",
    env: { LOCK_SECONDS: "1" },
    required: true,
    path: "/refunds",
  },
  {
    name: "pattern: unique index and lock",
    store: "postgres",
    app: "unique_index",
    required: true,
    tenant: true,
    path: "/refunds",
  },
  {
    name: "pattern: key in the work's transaction",
    store: "sqlite",
    app: "python_sqlite",
    exact: true,
    required: true,
    tenant: true,
    path: "/refunds",
  },
  ...["sqlite", "postgres", "redis"].flatMap((store) =>
    ["ietf", "stripe", "lenient"].map((preset) => gateway([preset, store])),
  ),
  // examples/payments, a service on the library; its provider keeps the books, and nothing makes it slow.
  { name: "idem library, the example", store: "sqlite", library: true, exact: true, profile: "ietf", tenant: true },
  { name: "no idempotency", store: "none", app: "plain", path: "/refunds", method: "PUT" },
];

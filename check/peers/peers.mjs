// The middlewares and set-ups that run.mjs judges. `app` is a file of apps/; `gateway` are flags of `idem gateway` in
// front of apps/plain.mjs. `profile`: the document that it claims to follow; custom demands what is safe, and
// `required` that a request without a key does not run. `tenant`: its keys have a scope by X-Tenant-Id. `path`: where
// else the same body is accepted.
export const peers = [
  { name: "express-idempotency", module: "express-idempotency", store: "memory", app: "express_idempotency", path: "/refunds" },
  { name: "@node-idempotency/core", module: "@node-idempotency/core", store: "memory", app: "node_idempotency", profile: "ietf", path: "/refunds" },
  { name: "@node-idempotency/core, Redis", module: "@node-idempotency/core", store: "redis", app: "node_idempotency", profile: "ietf", path: "/refunds" },
  {
    name: "Powertools for AWS Lambda",
    module: "@aws-lambda-powertools/idempotency",
    store: "dynamodb",
    app: "powertools",
    required: true,
  },
  { name: "pattern: SELECT, then INSERT", store: "postgres", app: "select_insert", required: true, path: "/refunds" },
  { name: "pattern: SET NX with a time to live", store: "redis", app: "redis_set_nx", required: true, path: "/refunds" },
  { name: "pattern: unique index and lock", store: "postgres", app: "unique_index", required: true, tenant: true, path: "/refunds" },
  ...["ietf", "stripe", "lenient"].map((preset) => ({
    name: `idem gateway, ${preset}`,
    store: "sqlite",
    gateway: ["--preset", preset],
    profile: preset === "lenient" ? "custom" : preset,
    tenant: true,
    path: "/refunds",
  })),
  { name: "idem gateway, ietf, PostgreSQL", store: "postgres", gateway: ["--preset", "ietf"], profile: "ietf", tenant: true, path: "/refunds" },
  // examples/payments, a service on the library; its provider keeps the books, and nothing makes it slow.
  { name: "idem library, the example", store: "sqlite", library: true, profile: "ietf", tenant: true },
  { name: "no idempotency", store: "none", app: "plain" },
];

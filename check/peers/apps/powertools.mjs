// @aws-lambda-powertools/idempotency as its documentation sets it up for an API: the handler is wrapped, the key comes
// from the header, the body's digest is compared, a key is needed. The table is DynamoDB's (dynalite at ENDPOINT).
import { CreateTableCommand, DescribeTableCommand, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { IdempotencyConfig, makeIdempotent } from "@aws-lambda-powertools/idempotency";
import { DynamoDBPersistenceLayer } from "@aws-lambda-powertools/idempotency/dynamodb";

import { Shop, invalid, listen, newApp, outcomeOf } from "./shop.mjs";

const client = new DynamoDBClient({
  endpoint: process.env.ENDPOINT,
  region: "us-east-1",
  credentials: { accessKeyId: "test", secretAccessKey: "test" },
});
const TableName = "keys";
const table = new CreateTableCommand({
  TableName,
  AttributeDefinitions: [{ AttributeName: "id", AttributeType: "S" }],
  KeySchema: [{ AttributeName: "id", KeyType: "HASH" }],
  BillingMode: "PAY_PER_REQUEST",
});
await client.send(table).catch((error) => {
  if (error.name !== "ResourceInUseException") throw error;
});
while ((await client.send(new DescribeTableCommand({ TableName }))).Table.TableStatus !== "ACTIVE");

const shop = new Shop();
const app = newApp(shop);
const handler = makeIdempotent(
  async (event) => {
    const { status, body } = await outcomeOf(() => shop.pay(event.request()));
    if (status >= 500) throw Object.assign(new Error("failed"), { status, body });
    return { statusCode: status, headers: { Location: `/payments/${body.id}` }, body: JSON.stringify(body) };
  },
  {
    persistenceStore: new DynamoDBPersistenceLayer({ tableName: TableName, awsSdkV3Client: client }),
    config: new IdempotencyConfig({
      eventKeyJmesPath: 'headers."idempotency-key"',
      payloadValidationJmesPath: "body",
      throwOnNoIdempotencyKey: true,
    }),
  },
);
const statuses = { IdempotencyAlreadyInProgressError: 409, IdempotencyValidationError: 422, IdempotencyKeyError: 400 };
const context = { getRemainingTimeInMillis: () => 30_000, functionName: "pay" };

app.post("/payments", async (request, response) => {
  if (invalid(request, response)) return;
  const event = { headers: request.headers, body: JSON.stringify(request.body) };
  Object.defineProperty(event, "request", { value: () => request, enumerable: false });
  try {
    const { statusCode, headers, body } = await handler(event, context);
    response.status(statusCode).set(headers).type("json").send(body);
  } catch (error) {
    // An error of the key comes as the cause of one of the layer; so does what the work throws.
    const { status, body, name } = error.status ? error : (error.cause ?? error);
    response.status(status ?? statuses[name] ?? 500).json(body ?? { error: name });
  }
});
listen(app);

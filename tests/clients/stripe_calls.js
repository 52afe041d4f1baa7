// Makes payments by Stripe's own client, and prints a line of JSON about what each of them came to.
//   node stripe_calls.js HOST:PORT '{"secret": "sk_...", "retries": 0, "at_once": 1, "calls": [{"key": ..., "amount": ...}]}'
// A call may have "omit_key": true, and "padding": bytes of metadata. `times` repeats one call with NUMBER in its key
// replaced.
'use strict';
const Stripe = require('stripe');

const [host, port] = process.argv[2].split(':');
const plan = JSON.parse(process.argv[3]);

// Stripe's client gives each POST a key; this one takes it away again.
function withoutKey(client) {
  const send = client.makeRequest.bind(client);
  client.makeRequest = (host, port, path, method, headers, ...rest) => {
    const kept = Object.entries(headers).filter(([name]) => name.toLowerCase() !== 'idempotency-key');
    return send(host, port, path, method, Object.fromEntries(kept), ...rest);
  };
  return client;
}

function stripe(omitKey) {
  const httpClient = Stripe.createNodeHttpClient();
  return new Stripe(plan.secret, {
    host, port, protocol: 'http', telemetry: false, maxNetworkRetries: plan.retries,
    httpClient: omitKey ? withoutKey(httpClient) : httpClient,
  });
}

const usual = stripe(false);

async function make(call, at) {
  const params = { amount: call.amount, currency: 'eur' };
  if (call.padding) params.metadata = { padding: 'x'.repeat(call.padding) };
  const said = { at };
  try {
    const client = call.omit_key ? stripe(true) : usual;
    const made = await client.paymentIntents.create(params, { idempotencyKey: call.key });
    said.error = '';
    said.id = made.id;
    said.status = made.lastResponse.statusCode;
    said.replayed = made.lastResponse.headers['idempotent-replayed'] === 'true';
  } catch (error) {
    said.error = error.type || error.name;
    said.status = error.statusCode || 0;
    said.type = error.rawType || '';
    said.code = error.code || '';
    said.message = error.message;
    said.retry = (error.headers || {})['stripe-should-retry'] || '';
    said.idem_code = (error.raw || {}).idem_code || '';
    said.operation_ref = (error.raw || {}).operation_ref || '';
  }
  console.log(JSON.stringify(said));
}

const calls = [];
for (const call of plan.calls) {
  for (let i = 0; i < (call.times || 1); ++i) {
    calls.push({ ...call, key: (call.key || '').replace('NUMBER', String(i)) });
  }
}

let next = 0;
async function work() {
  while (next < calls.length) {
    const at = next++;
    await make(calls[at], at);
  }
}
Promise.all(Array.from({ length: plan.at_once || 1 }, work)).then(() => console.log('done'));

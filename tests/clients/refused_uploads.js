// Sends a body that will be refused, again and again, and counts what its client makes of that.
//   node refused_uploads.js fetch|slow|axios URL BYTES TIMES [NAME=VALUE...]
// slow: fetch, with a body of which all but 300 bytes are late.
// Prints a line "OUTCOME COUNT" for each outcome: a status, or the code of an error. NAME=VALUE: fields of the request.
'use strict';

const [kind, url, bytes, times, ...given] = process.argv.slice(2);
const body = Buffer.alloc(Number(bytes), 'x');
const headers = Object.fromEntries(given.map((field) => field.split('=')));

function late() {
  const parts = [body.subarray(0, 300), body.subarray(300)];
  return new ReadableStream({
    async pull(controller) {
      if (parts.length === 1) await new Promise((go) => setTimeout(go, 1500));
      controller.enqueue(new Uint8Array(parts.shift()));
      if (parts.length === 0) controller.close();
    },
  });
}

async function once() {
  if (kind === 'slow') {
    const answer = await fetch(url, { method: 'POST', body: late(), duplex: 'half', headers });
    await answer.text();
    return answer.status;
  }
  if (kind === 'fetch') {
    const answer = await fetch(url, { method: 'POST', body, headers });
    await answer.text();
    return answer.status;
  }
  const axios = require('axios');
  const answer = await axios.post(url, body, {
    headers, maxBodyLength: Infinity, maxRedirects: 0, validateStatus: () => true,
  });
  return answer.status;
}

async function main() {
  const outcomes = new Map();
  for (let i = 0; i < Number(times); ++i) {
    let outcome;
    try {
      outcome = await once();
    } catch (error) {
      outcome = (error.cause && error.cause.code) || error.code || error.message;
    }
    outcomes.set(outcome, (outcomes.get(outcome) || 0) + 1);
  }
  for (const [outcome, count] of outcomes) console.log(`${outcome} ${count}`);
}
main();

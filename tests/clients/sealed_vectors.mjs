// Prints tests/unit/core/record/sealed_vectors.txt: sealed answers, requests, texts and lines, made from the description in
// docs/encryption.md with Node's crypto. Shares no code with src/core/record/sealed_parts.cpp.
//
//   node tests/clients/sealed_vectors.mjs > tests/unit/core/record/sealed_vectors.txt
import { createCipheriv, createHmac } from 'node:crypto';

const hex = (bytes) => Buffer.from(bytes).toString('hex');
const number = (value, bytes) => {
  const out = Buffer.alloc(bytes);
  for (let i = 0; i < bytes; ++i) out[i] = Number((BigInt(value) >> BigInt(8 * i)) & 255n);
  return out;
};
const framed = (bytes, width) => Buffer.concat([number(bytes.length, width), Buffer.from(bytes)]);
const hmac = (key, message) => createHmac('sha256', key).update(message).digest();

const wrappingKey = (secret) => hmac(hmac(secret, 'idem encryption key'), '');
const keyName = (secret) => hmac(hmac(secret, 'idem encryption key name'), '').subarray(0, 8);

function wrap(key, inner) {
  const cipher = createCipheriv('id-aes256-wrap', key, Buffer.alloc(8, 0xa6));  // RFC 3394's initial value
  return Buffer.concat([cipher.update(inner), cipher.final()]);
}

function gcm(key, part, bound, text) {
  const cipher = createCipheriv('aes-256-gcm', key, Buffer.concat([Buffer.alloc(11), Buffer.from([part])]));
  cipher.setAAD(bound);
  const out = Buffer.concat([cipher.update(text), cipher.final()]);
  return { out, tag: cipher.getAuthTag() };
}

const envelope = (kind, name, key, inner) => Buffer.concat([Buffer.from([1, kind]), name, wrap(key, inner)]);

function bound(part, { scope, id, fence }, state, answer) {
  const text = (value) => framed(Buffer.from(value), 8);
  const parts = [text('idem sealed 1'), text(part), text(scope), text(id), number(fence, 8)];
  if (state) parts.push(text(state));
  if (answer) parts.push(number(answer.status, 8), number(answer.stored ? 1 : 0, 8));
  return Buffer.concat(parts);
}

function sealedAnswer(secret, inner, to, answer, kind = 1) {
  const head = Buffer.concat([
    Buffer.from([1]), number(answer.status, 2), Buffer.from([answer.stored ? 1 : 0]),
    ...answer.fields.flat().map((part) => framed(Buffer.from(part, 'latin1'), 4)),
  ]);
  const body = gcm(inner, 2, bound('body', to, 'completed', answer), answer.body);
  const first = gcm(inner, 1, bound('head', to, 'completed', answer), head);
  const bytes = Buffer.concat(
    [envelope(kind, keyName(secret), wrappingKey(secret), inner), body.tag, first.out, first.tag]);
  return { field: bytes.toString('base64'), body: body.out };
}

function sealedText(secret, inner, to, part, nonce, state, text) {
  const { out, tag } = gcm(inner, nonce, bound(part, to, state), text);
  return Buffer.concat([envelope(1, keyName(secret), wrappingKey(secret), inner), out, tag]);
}

// One stream of bytes for all: SHA-256 of a counter.
let counter = 0;
const bytes = (size) => {
  let out = Buffer.alloc(0);
  while (out.length < size) out = Buffer.concat([out, hmac('vectors', String(counter++))]);
  return out.subarray(0, size);
};

console.log('# Made by: node tests/clients/sealed_vectors.mjs (Node\'s crypto). NAME VALUE; bytes are hexadecimal.');
const answers = [
  { status: 201, stored: true, fields: [['Content-Type', 'application/json']], body: '{"id":"pay_1"}' },
  { status: 204, stored: true, fields: [], body: '' },
  { status: 500, stored: false, fields: [['X-A', 'caf\xe9'], ['x-a', '']], body: '' },
  { status: 200, stored: true, fields: [['ETag', '"' + 'e'.repeat(4000) + '"']], body: bytes(3_000) },
];
answers.forEach((answer, n) => {
  answer.body = Buffer.from(answer.body);
  const [secret, newer, inner, id] = [bytes(32), bytes(32), bytes(32), bytes(16)];
  const to = { scope: ['tenant-1', '', 'caf\xe9', 's'.repeat(300)][n], id, fence: [1n, 77n, 2n ** 63n, 5n][n] };
  const sealed = sealedAnswer(secret, inner, to, answer);
  const again = sealedAnswer(newer, inner, to, answer);
  const scoped = sealedAnswer(newer, inner, to, answer, 2);  // `newer` as the random bytes of a scope's key.
  console.log(`answer ${n}`);
  console.log(`secret ${hex(secret)}\nnewer ${hex(newer)}\nkey_name ${hex(keyName(secret))}`);
  console.log(`scope ${hex(Buffer.from(to.scope)) || '-'}\nid ${hex(id)}\nfence ${to.fence}`);
  console.log(`status ${answer.status}\nstored ${answer.stored ? 1 : 0}`);
  console.log(`fields ${answer.fields.flat().map((part) => hex(Buffer.from(part, 'latin1'))).join(',') || '-'}`);
  console.log(`body ${hex(answer.body) || '-'}\nsealed_body ${hex(sealed.body) || '-'}`);
  console.log(`field ${sealed.field}\nrewrapped ${again.field}\nscoped ${scoped.field}`);
});
['POST / please', ''].forEach((text, n) => {
  const [secret, newer, inner, id] = [bytes(32), bytes(32), bytes(32), bytes(16)];
  const ids = n === 0 ? id : Buffer.concat([bytes(16), id]);
  const to = { scope: 'tenant-2', id: ids, fence: 0n };
  const request = (with_) => Buffer.concat([Buffer.from('idem-sealed'), number(ids.length / 16, 2), ids,
    sealedText(with_, inner, to, 'request', 3, 'pending', Buffer.from(text))]);
  console.log(`request ${n}\nsecret ${hex(secret)}\nnewer ${hex(newer)}\nkey_name ${hex(keyName(secret))}`);
  console.log(`scope ${hex(Buffer.from(to.scope)) || '-'}\nid ${hex(id)}\nfence 0\nplain ${hex(Buffer.from(text)) || '-'}`);
  console.log(`sealed ${hex(request(secret))}\nrewrapped ${hex(request(newer))}`);
});
{
  const [secret, inner, id] = [bytes(32), bytes(32), bytes(16)];
  const to = { scope: '', id, fence: 3n };
  const text = '{"event":"e1","kept":{"status":200}}';
  const sealed = sealedText(secret, inner, to, 'evidence', 4, '', Buffer.from(text));
  console.log(`evidence 0\nsecret ${hex(secret)}\nkey_name ${hex(keyName(secret))}\nscope -\nid ${hex(id)}\nfence 3`);
  console.log(`plain ${hex(Buffer.from(text))}\nsealed ${hex(Buffer.from('idem-sealed:' + sealed.toString('base64')))}`);
}
['{"line":"ask"}', ''].forEach((text, n) => {
  const [secret, inner] = [bytes(32), bytes(32)];
  const journal = `approval/${n}`;
  const place = Buffer.concat([
    ...['idem sealed 1', 'line', journal].map((part) => framed(Buffer.from(part), 8)), number(n + 1, 8)]);
  const { out, tag } = gcm(inner, 5, place, Buffer.from(text));
  const sealed = Buffer.concat(
    [Buffer.from('idem-sealed'), envelope(1, keyName(secret), wrappingKey(secret), inner), out, tag]);
  console.log(`line ${n}\nsecret ${hex(secret)}\nkey_name ${hex(keyName(secret))}`);
  console.log(`journal ${journal}\nnumber ${n + 1}\nplain ${hex(Buffer.from(text)) || '-'}\nsealed ${hex(sealed)}`);
});

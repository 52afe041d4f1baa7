// Requests over sockets of their own, byte by byte: the selftest also sends what no HTTP library would.
import net from "node:net";

const answerMs = 20_000;

/** The bytes of a request; `headers` are [name, value] pairs, values latin1. */
export function bytes({ method = "POST", path = "/payments", headers = [], body = "" }) {
  const text = Buffer.from(body);
  const lines = [["Host", "localhost"], ["Connection", "close"], ["Content-Type", "application/json"], ...headers];
  if (method !== "GET") lines.push(["Content-Length", text.length]);
  const head = `${method} ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
  return { head: Buffer.from(head, "latin1"), body: text };
}

function answer(received) {
  const end = received.indexOf("\r\n\r\n");
  if (end < 0) return { status: 0, headers: {}, body: "", lost: true };
  const [first, ...lines] = received.subarray(0, end).toString("latin1").split("\r\n");
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]),
  );
  return { status: Number(first.split(" ")[1]), headers, body: received.subarray(end + 4).toString() };
}

export function connect(port) {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, "127.0.0.1", () => resolve(socket));
    socket.setNoDelay(true).on("error", reject);
  });
}

/** The answer of a request; `at` is a connection that was made before. */
export async function send(port, request, at) {
  const socket = at ?? (await connect(port));
  const { head, body } = bytes(request);
  return new Promise((resolve) => {
    const parts = [];
    socket.setTimeout(answerMs, () => socket.destroy());
    socket.removeAllListeners("error").on("error", () => {});
    socket.on("data", (part) => parts.push(part)).on("close", () => resolve(answer(Buffer.concat(parts))));
    socket.write(Buffer.concat([head, body]));
  });
}

/** Sends a part of a request, or all of it, and goes away; `until` waits for what must come before. */
export async function abandon(port, part, until) {
  const socket = await connect(port);
  socket.removeAllListeners("error").on("error", () => {});
  await new Promise((resolve) => {
    socket.write(part, resolve);
  });
  await until?.(socket);
  await new Promise((resolve) => {
    socket.on("close", resolve).destroy();
  });
}

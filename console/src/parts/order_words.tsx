import type { ComponentChild } from "preact";

import type { ApprovalKind, OrderBody, WaitingOrder } from "../api/approvals";
import { get } from "../api/client";
import { type Match, type What, preview } from "../api/jobs";
import type { Message } from "../api/messages";
import type { KeySummary } from "../api/types";
import { useLive } from "../state/live";
import { Moment } from "./show";
import { count, span } from "./words";

export const kindWords: Record<ApprovalKind, string> = {
  resolve: "settle a record by evidence",
  release: "drop a stored error, so that a retry runs again",
  jobs: "decide about many at once",
  discard: "discard a dead letter for good",
};

const jobWords: Record<string, string> = {
  "keys.resolve": "settle records by evidence",
  "keys.release": "drop stored errors, so that retries run again",
  "dlq.redrive": "send dead letters again",
  "dlq.discard": "discard dead letters for good",
};

/** What an order does, in a few words. */
export function whatOf({ kind, order }: WaitingOrder): string {
  const job = kind === "jobs" ? jobWords[order?.what ?? ""] : undefined;
  return job === undefined ? kindWords[kind] : `${kindWords.jobs}: ${job}`;
}

const runsAgain = "If it was done after all, it happens twice: a customer pays twice.";
const effects = {
  completed:
    "completes with the answer of the order. Each retry gets it while the gateway keeps answers. This cannot be " +
    "taken back.",
  failed_retryable: `can run again: at the client's next retry, or by itself where the request is stored. ${runsAgain}`,
  release: `loses its stored answer, and the client's next retry runs the work again. ${runsAgain}`,
  redrive: "is sent once more. One that its destination refuses again becomes a dead letter again.",
  discard: "is not sent any more: a destination that did not get it never does. This cannot be taken back.",
};

/** What the order causes once it has its approvals. */
export function causesOf({ kind, order = {} }: WaitingOrder): string {
  const isJob = kind === "jobs";
  const about = (isJob ? order.order : order) ?? {};
  const what = isJob ? order.what : { resolve: "keys.resolve", release: "keys.release", discard: "dlq.discard" }[kind];
  const each = isJob ? `Each of ${count(order.expected ?? 0)}` : "The";
  if (what === "dlq.discard") return `${each} ${isJob ? "dead letters" : "message"} ${effects.discard}`;
  if (what === "dlq.redrive") {
    const twice = about.nothing_there ? " One that had arrived after all arrives twice." : "";
    return `${each} dead letters ${effects.redrive}${twice}`;
  }
  const effect = what === "keys.release" ? effects.release : effects[about.as ?? "completed"];
  return `${each} ${isJob ? "records" : "record"} ${effect}`;
}

const matchWords = (match: Record<string, string | boolean>): string =>
  Object.entries(match)
    .map(([name, value]) => `${name.replaceAll("_", " ")} ${String(value)}`)
    .join(", ") || "all";

/** The members of an order, each with its name; those that stand elsewhere on the page are left out. */
function factsOf(order: OrderBody): [string, ComponentChild][] {
  const facts: [string, ComponentChild][] = [];
  const see = (name: string, value: ComponentChild | undefined): void => {
    if (value !== undefined) facts.push([name, value]);
  };
  if (order.as !== undefined)
    see(
      "decision",
      order.as === "completed"
        ? "it has ended: complete it with the answer below"
        : "it was not done: let it run again",
    );
  see("about attempt", order.fence);
  see("what was seen", order.evidence);
  if (order.observed_at !== undefined) see("looked", <Moment at={order.observed_at} />);
  if (order.match !== undefined) see("which", matchWords(order.match));
  if (order.expected !== undefined) see("how many", count(order.expected));
  if (order.rate !== undefined) {
    const lasts = order.expected === undefined ? "" : `: about ${span(Math.max(1, order.expected / order.rate))}`;
    see("rate", `${count(order.rate)} a second${lasts}`);
  }
  if (order.nothing_there) see("may have arrived", "sent, too: the operator looked, and says that they did not arrive");
  const known = new Set([
    "as",
    "fence",
    "evidence",
    "observed_at",
    "match",
    "expected",
    "rate",
    "nothing_there",
    "response",
    "reason",
    "id",
    "what",
    "order",
    "by",
    "dry_run",
  ]);
  for (const [name, value] of Object.entries(order)) {
    if (!known.has(name)) see(name.replaceAll("_", " "), typeof value === "string" ? value : JSON.stringify(value));
  }
  return facts;
}

/** The answer that an order has in it, as text. */
function answerText({ status, headers = [], body_b64 = "" }: NonNullable<OrderBody["response"]>): string {
  const fields = headers.map(([name, value]) => `${name}: ${value}\n`).join("");
  let body: string;
  try {
    body = new TextDecoder("utf-8", { fatal: true }).decode(
      Uint8Array.from(atob(body_b64), (one) => one.charCodeAt(0)),
    );
  } catch {
    body = "(the body is no text)";
  }
  return `${status ?? ""}\n${fields}\n${body === "" ? "(no body)" : body}`;
}

/** An order in words, in full. */
export function TheOrder({ of: order }: { of: OrderBody }) {
  const response = order.response ?? order.order?.response;
  const facts = [...factsOf(order), ...factsOf(order.order ?? {})];
  return (
    <>
      {facts.length === 0 ? (
        <p>It has nothing but its reason.</p>
      ) : (
        <dl class="facts">
          {facts.map(([name, value]) => [<dt key={name}>{name}</dt>, <dd key={`${name} is`}>{value}</dd>])}
        </dl>
      )}
      {response === undefined ? null : (
        <>
          <p class="note">The answer that retries get:</p>
          <pre tabIndex={0}>{answerText(response)}</pre>
        </>
      )}
    </>
  );
}

/** As the gateway writes down what an order is about: the same text means that nothing has changed. */
function recordText(record: KeySummary): string {
  const status = record.response_status === null ? "" : ` status=${record.response_status}`;
  return `${record.state} fence=${record.fence}${status}${record.contested ? " contested" : ""}`;
}
const messageText = (one: Message): string => `${one.state} attempts=${one.attempts} last_error=${one.last_error}`;

const inWords = (text: string): string =>
  text
    .replace(/, records_sha256=[0-9a-f]+$/, "")
    .replace(/^(?:dlq|keys)\.\w+ of (\d+) records/, "$1 match")
    .replace(/ fence=/, ", attempt ")
    .replace(/ status=/, ", answer ")
    .replace(/ contested$/, ", contested")
    .replace(/ attempts=1\b/, ", 1 attempt")
    .replace(/ attempts=(\d+)/, ", $1 attempts")
    .replace(/ last_error=$/, "")
    .replace(/ last_error=/, ", last error: ")
    .replace("_", " ");

interface Present {
  text: string;
  isSame: boolean;
}

/** What the comparison means for the order. */
function Comparison({ of: order, now }: { of: WaitingOrder; now: Present }) {
  const same = order.kind === "jobs" ? "as many as then; the gateway compares each" : "the same";
  if (now.isSame)
    return (
      <>
        {now.text}: <span class="good">✓ {same}</span>
      </>
    );
  // What was begun may have changed it.
  const means =
    order.state === "deciding"
      ? "it has changed, perhaps by this order"
      : "it has changed, and the gateway will refuse the order";
  return (
    <>
      {now.text}: <b class="contested">✗ {means}</b>
    </>
  );
}

/** What the order is about, as it is at this moment. */
async function present({ kind, ref, order, record, seen }: WaitingOrder): Promise<Present> {
  if (kind === "jobs") {
    const found = await preview(order?.what as What, (order?.match ?? {}) as Match);
    const isSame = found.is_exact && found.count === order?.expected;
    return { text: `${found.is_exact ? "" : "at least "}${count(found.count)} match`, isSame };
  }
  if (kind === "discard" && ref !== null) {
    const text = messageText(await get<Message>(`/v1/outbox/${ref}`));
    return { text: inWords(text), isSame: text === seen };
  }
  if (record === undefined || record === null) return { text: "the gateway has forgotten it", isSame: false };
  const text = recordText(record);
  return { text: inWords(text), isSame: text === seen };
}

/** What was seen when the order was given, against what is there now; of an order that is over only the first. */
export function SeenAndNow({ of: order }: { of: WaitingOrder }) {
  const isOpen = order.state === "waiting" || order.state === "deciding";
  const ask = (): Promise<Present | null> => (isOpen ? present(order) : Promise.resolve(null));
  // A job's records are counted one by one in the store.
  const { loaded } = useLive(ask, order.kind === "jobs" ? 60_000 : 5_000, [
    order.approval,
    order.state,
    JSON.stringify(order.record ?? null),
  ]);
  const { value: now, problem } = loaded.value;
  return (
    <>
      <dt>as it was then</dt>
      <dd>{inWords(order.seen)}</dd>
      {!isOpen ? null : (
        <>
          <dt>as it is now</dt>
          <dd>
            {now !== null ? (
              <Comparison of={order} now={now} />
            ) : problem === null ? (
              "asking…"
            ) : (
              `not known: ${problem.title}`
            )}
          </dd>
        </>
      )}
    </>
  );
}

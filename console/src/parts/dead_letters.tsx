import { type Signal, useSignal } from "@preact/signals";

import { ApiError, inDoubt, post } from "../api/client";
import type { Job } from "../api/jobs";
import { type Ordered, verdicts } from "../api/messages";
import type { Approval, Session } from "../api/types";
import { address } from "../state/place";
import { Check, OperatorName, Text, useOrder } from "./fields";
import { Nothing, Trouble } from "./show";
import { Table } from "./table";
import { count, span } from "./words";

/** Which dead letters an order is about: one, those of a destination and type, or all. */
export interface Which {
  id?: string;
  destination?: string;
  type?: string;
}
type What = "redrive" | "discard";

const titles: Record<What, string> = { redrive: "Send again", discard: "Discard for good" };
const causes: Record<What, string> = {
  redrive:
    "Each message is sent once more, with the attempts of a new one. Mend the destination first: a message that it refuses again becomes a dead letter again.",
  discard: "Nobody sends these messages any more, and the destination never learns what they say. This cannot be taken back.",
};
/** What an API lists at once; a larger number is a job's, which counts by itself. */
const listed_max = 1_000;

const named = (which: Which): string =>
  which.id !== undefined
    ? "this message"
    : [which.destination === undefined ? "all dead letters" : `dead letters to ${which.destination}`, which.type === undefined ? "" : `of type ${which.type}`].filter((one) => one !== "").join(" ");

/** How many of each verdict. */
function Summary({ of: ordered }: { of: Ordered }) {
  const numbers = new Map<string, number>();
  for (const { destination, type, verdict } of ordered.messages) {
    const key = JSON.stringify([verdict, destination, type]);
    numbers.set(key, (numbers.get(key) ?? 0) + 1);
  }
  if (numbers.size === 0) return <Nothing>No dead letter matches.</Nothing>;
  return (
    <Table name="What the order does" columns={["number", "destination", "type", "each of them"]} rows={[...numbers].map(([key, number]) => {
      const [verdict = "", destination = "", type = ""] = JSON.parse(key) as string[];
      return { key, cells: [count(number), destination, type, verdicts[verdict] ?? verdict] };
    })} />
  );
}

interface Fields {
  reason: Signal<string>;
  rate: Signal<string>;
  isNothingThere: Signal<boolean>;
}

function ofOrder(what: What, fields: Fields): Record<string, unknown> {
  const order: Record<string, unknown> = { reason: fields.reason.value };
  if (what === "redrive") order["nothing_there"] = fields.isNothingThere.value;
  return order;
}

/** What an order came to; text for the operator, and where to look. */
export interface Came {
  text: string;
  to?: string;
}

/** It stands outside of the form, which goes when the order is done. */
export function CameOf({ of: came }: { of: Signal<Came | null> }) {
  const shown = came.value;
  return (
    <p role="status" class="said">
      {shown?.text ?? ""}{shown?.to === undefined ? null : <> <a href={shown.to}>See it</a></>}
    </p>
  );
}

async function orderOne(what: What, id: string, fields: Fields): Promise<Came> {
  const answer = await post<Partial<Ordered> & Partial<Approval>>(`/v1/dlq/${what}`, { id, ...ofOrder(what, fields) });
  if (typeof answer.approval === "string") {
    return { text: "Nothing is done yet: another operator must approve it.", to: address(["approvals", answer.approval]) };
  }
  if (!Array.isArray(answer.messages)) throw new ApiError(inDoubt);
  const done = answer.messages[0];
  if (done === undefined) return { text: "Nothing was done: it is no dead letter any more." };
  return { text: `Done: it ${verdicts[done.verdict] ?? done.verdict}.` };
}

async function orderMany(what: What, which: Which, fields: Fields, expected: number): Promise<Came> {
  const match = Object.fromEntries(Object.entries(which).filter(([, value]) => value !== undefined));
  const answer = await post<Partial<Job> & Partial<Approval>>("/v1/jobs", { what: `dlq.${what}`, match, order: ofOrder(what, fields), expected, rate: Number(fields.rate.value) });
  if (typeof answer.approval === "string") {
    return { text: "Nothing is done yet: other operators must approve it.", to: address(["approvals", answer.approval]) };
  }
  if (typeof answer.job !== "string") throw new ApiError(inDoubt);
  return { text: `A job decides about the ${count(expected)}, one by one.`, to: address(["jobs", answer.job]) };
}

function RedriveFields({ of: fields, isOne, number }: { of: Fields; isOne: boolean; number: number }) {
  const rate = Number(fields.rate.value);
  return (
    <>
      {isOne ? null : (
        <Text label="Messages a second" name="rate" type="number" required value={fields.rate}
          note={rate > 0 ? `${count(number)} messages last about ${span(number / rate)}. Do not overrun a destination that has just come back.` : "Write a number from 1 to 1000."} />
      )}
      <Check label="I have looked at the destination: those that may have arrived did not arrive" value={fields.isNothingThere}
        note="Then they are sent, too. If one did arrive, it arrives twice. Without this they stay dead letters." />
    </>
  );
}

/** An order about dead letters: first what it would do with each, then the order itself. */
export function DeadLettersOrder(props: { what: What; which: Which; who: Session; came: Signal<Came | null>; after: () => void; leave: () => void }) {
  const { what, which } = props;
  const fields: Fields = { reason: useSignal(""), rate: useSignal("10"), isNothingThere: useSignal(false) };
  const looked = useSignal<{ ordered: Ordered; isNothingThere: boolean } | null>(null);
  const { sending, problem, send } = useOrder();
  const dryRun = async (event: Event): Promise<void> => {
    event.preventDefault();
    const isNothingThere = fields.isNothingThere.value;
    const ordered = await send(() => post<Ordered>(`/v1/dlq/${what}`, { ...(which.id === undefined && which.destination === undefined && which.type === undefined ? { all: true } : which), ...ofOrder(what, fields), dry_run: true }));
    looked.value = ordered === null ? null : { ordered, isNothingThere };
  };
  // What was seen counts for the order that was looked at, and for no other.
  const seen = looked.value?.isNothingThere === fields.isNothingThere.value ? looked.value.ordered : null;
  const number = seen?.messages.length ?? 0;
  const doIt = async (): Promise<void> => {
    const done = await send(() => (which.id === undefined ? orderMany(what, which, fields, number) : orderOne(what, which.id, fields)));
    if (done === null) {
      // Another number matches by now: look again first.
      if (problem.value?.count !== undefined) looked.value = null;
      return;
    }
    props.came.value = done;
    props.after();
    props.leave();
  };
  const isTooMany = which.id === undefined && number >= listed_max;
  return (
    <form class="decide" aria-label={titles[what]} onSubmit={(event) => void dryRun(event)}>
      <p class="causes">{titles[what]}: {named(which)}. {causes[what]}</p>
      <Text label="Reason" name="reason" required value={fields.reason} />
      {what === "redrive" ? <RedriveFields of={fields} isOne={which.id !== undefined} number={number} /> : null}
      <OperatorName who={props.who} />
      {problem.value === null ? null : <Trouble problem={problem.value} />}
      {problem.value?.count === undefined ? null : <p class="note">{count(problem.value.count)} match now. See again what the order would do.</p>}
      {seen === null ? null : <Summary of={seen} />}
      {isTooMany ? <p class="note">More than {count(listed_max - 1)} match: choose a destination or type, or use idem dlq {what}.</p> : null}
      <p class="buttons">
        <button type="submit" disabled={sending.value}>{sending.value ? "Asking…" : seen === null ? "See what it would do" : "See it again"}</button>
        {seen === null || number === 0 || isTooMany ? null : (
          <button type="button" class="confirm" disabled={sending.value} onClick={() => void doIt()}>
            {which.id === undefined ? `${titles[what]}: ${count(number)}` : titles[what]}
          </button>
        )}
        <button type="button" onClick={props.leave}>Leave it as it is</button>
      </p>
    </form>
  );
}

import { type Signal, useSignal } from "@preact/signals";

import { ApiError, inDoubt, post } from "../api/client";
import { type Job, type Preview, preview } from "../api/jobs";
import { type Ordered, type Which, dryRun, lookAgain, verdicts } from "../api/messages";
import type { Approval, Problem, Session } from "../api/types";
import { address } from "../state/place";
import { Check, OperatorName, Text, useOrder } from "./fields";
import { Nothing, Trouble } from "./show";
import { Table } from "./table";
import { count, span } from "./words";

type What = "redrive" | "discard";

const titles: Record<What, string> = { redrive: "Send again", discard: "Discard for good" };
const causes: Record<What, string> = {
  redrive:
    "Each message is sent once more, with the attempts of a new one. Mend the destination first: a message that it " +
    "refuses again becomes a dead letter again.",
  discard:
    "Nobody sends these messages any more, and the destination never learns what they say. This cannot be taken back.",
};
/** What the API lists at once; a job counts what is more. */
const listed_max = 1_000;
/** From so many messages on the operator types the number of those that are lost for good. */
const typed_above = 20;

const named = (which: Which): string =>
  which.id !== undefined
    ? "this message"
    : [
        which.destination === undefined ? "all dead letters" : `dead letters to ${which.destination}`,
        which.type === undefined ? "" : `of type ${which.type}`,
      ]
        .filter((one) => one !== "")
        .join(" ");

interface Fields {
  reason: Signal<string>;
  type: Signal<string>;
  rate: Signal<string>;
  typed: Signal<string>;
  isNothingThere: Signal<boolean>;
}

/** What a dry run was about, and what it found. */
interface Seen {
  asked: string;
  ordered: Ordered;
  /** Of all that match; the dry run lists the first of them. */
  number: number;
  isExact: boolean;
}

const whichOf = (which: Which, fields: Fields): Which => {
  const type = fields.type.value.trim();
  return which.id !== undefined || type === "" ? which : { ...which, type };
};

function ofOrder(what: What, fields: Fields): Record<string, unknown> {
  const order: Record<string, unknown> = { reason: fields.reason.value };
  if (what === "redrive") order["nothing_there"] = fields.isNothingThere.value;
  return order;
}

/** What the order is about: what was seen counts for this, and for nothing else. */
const askedOf = (which: Which, fields: Fields): string =>
  JSON.stringify([whichOf(which, fields), fields.isNothingThere.value]);

async function look(what: What, which: Which, fields: Fields): Promise<Seen> {
  const asked = askedOf(which, fields);
  const chosen = whichOf(which, fields);
  const ordered = await dryRun(what, chosen, ofOrder(what, fields));
  const number = ordered.messages.length;
  if (number < listed_max) return { asked, ordered, number, isExact: true };
  const { id, ...match } = chosen;
  const all: Preview = await preview(`dlq.${what}`, match as Record<string, string>).catch((error: unknown) => {
    throw lookAgain(error);
  });
  return { asked, ordered, number: Math.max(all.count, number), isExact: all.is_exact };
}

/** Whether a second look found the same messages, with the same verdicts. */
const isSame = (one: Seen, other: Seen): boolean =>
  one.number === other.number && JSON.stringify(one.ordered.messages) === JSON.stringify(other.ordered.messages);

/** How many of each verdict. */
function Summary({ of: seen }: { of: Seen }) {
  const numbers = new Map<string, number>();
  for (const { destination, type, verdict } of seen.ordered.messages) {
    const key = JSON.stringify([verdict, destination, type]);
    numbers.set(key, (numbers.get(key) ?? 0) + 1);
  }
  if (numbers.size === 0) return <Nothing>No dead letter matches.</Nothing>;
  const listed = seen.ordered.messages.length;
  return (
    <>
      {seen.number === listed ? null : (
        <p>
          {seen.isExact ? "" : "At least "}
          <b>{count(seen.number)}</b> match. Below are the first {count(listed)}; the job decides about each of the
          others by the same rules, and its page has the verdict of each.
        </p>
      )}
      {seen.isExact ? null : <p class="contested">That is more than one job may have: name a destination or a type.</p>}
      <Table
        name="What the order does"
        columns={["number", "destination", "type", "each of them"]}
        rows={[...numbers].map(([key, number]) => {
          const [verdict = "", destination = "", type = ""] = JSON.parse(key) as string[];
          return { key, cells: [count(number), destination, type, verdicts[verdict] ?? verdict] };
        })}
      />
    </>
  );
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
      {shown?.text ?? ""}
      {shown?.to === undefined ? null : (
        <>
          {" "}
          <a href={shown.to}>See it</a>
        </>
      )}
    </p>
  );
}

async function orderOne(what: What, id: string, fields: Fields): Promise<Came> {
  const answer = await post<Partial<Ordered> & Partial<Approval>>(`/v1/dlq/${what}`, { id, ...ofOrder(what, fields) });
  if (typeof answer.approval === "string") {
    return {
      text: "Nothing is done yet: another operator must approve it.",
      to: address(["approvals", answer.approval]),
    };
  }
  if (!Array.isArray(answer.messages) || answer.dry_run !== false) throw new ApiError(inDoubt);
  const done = answer.messages[0];
  if (done === undefined) return { text: "Nothing was done: it is no dead letter any more." };
  if (done.verdict === "may_have_arrived") return { text: `Nothing was done: it ${verdicts[done.verdict]}.` };
  return { text: `Done: it ${verdicts[done.verdict] ?? done.verdict}.` };
}

async function orderMany(what: What, which: Which, fields: Fields, expected: number): Promise<Came> {
  const { id, ...match } = whichOf(which, fields);
  const answer = await post<Partial<Job> & Partial<Approval>>("/v1/jobs", {
    what: `dlq.${what}`,
    match,
    order: ofOrder(what, fields),
    expected,
    rate: Number(fields.rate.value),
  });
  if (typeof answer.approval === "string") {
    return {
      text: "Nothing is done yet: another operator must approve it.",
      to: address(["approvals", answer.approval]),
    };
  }
  if (typeof answer.job !== "string") throw new ApiError(inDoubt);
  return { text: `A job decides about the ${count(expected)}, one by one.`, to: address(["jobs", answer.job]) };
}

const rateOf = (fields: Fields): number | null => {
  const rate = /^\d{1,4}$/.test(fields.rate.value.trim()) ? Number(fields.rate.value) : 0;
  return rate >= 1 && rate <= 1_000 ? rate : null;
};

function RateField({ of: fields, what, seen }: { of: Fields; what: What; seen: Seen | null }) {
  const rate = rateOf(fields);
  const lasts =
    rate === null || seen === null
      ? ""
      : `${count(seen.number)} messages last about ${span(Math.max(1, seen.number / rate))}. `;
  const why =
    what === "redrive"
      ? "Do not overrun a destination that has just come back."
      : "A slow job leaves you time to look at what it does, and to cancel it.";
  return (
    <Text
      label="Messages a second"
      name="rate"
      type="number"
      required
      value={fields.rate}
      note={rate === null ? "Write a whole number from 1 to 1000." : lasts + why}
    />
  );
}

function FormFields({ of: fields, what, isOne, seen }: { of: Fields; what: What; isOne: boolean; seen: Seen | null }) {
  return (
    <>
      <Text label="Reason" name="reason" required value={fields.reason} />
      {isOne ? null : (
        <>
          <Text
            label="Only of this type"
            name="type"
            value={fields.type}
            note="Empty: messages of all types. The list below has all."
          />
          <RateField of={fields} what={what} seen={seen} />
        </>
      )}
      {what === "discard" ? null : (
        <Check
          label="I have looked at the destination: those that may have arrived did not arrive"
          value={fields.isNothingThere}
          note="Then they are sent, too. If one did arrive, it arrives twice. Without this they stay dead letters."
        />
      )}
    </>
  );
}

interface OrderProps {
  what: What;
  which: Which;
  who: Session;
  came: Signal<Came | null>;
  after: () => void;
  leave: () => void;
}

/** What was seen, and whether it may be ordered. */
function readyOf(
  what: What,
  which: Which,
  fields: Fields,
  looked: Seen | null,
): { seen: Seen | null; isOffered: boolean; isReady: boolean; types: boolean } {
  const seen = looked !== null && looked.asked === askedOf(which, fields) ? looked : null;
  const acts = seen?.ordered.messages.some((one) => one.verdict !== "may_have_arrived") ?? false;
  const isOne = which.id !== undefined;
  const isOffered = seen !== null && seen.isExact && (acts || seen.number > seen.ordered.messages.length);
  const types = isOffered && !isOne && what === "discard" && seen.number > typed_above;
  const isTyped = !types || fields.typed.value.replaceAll(",", "").trim() === String(seen.number);
  const isReady = isOffered && isTyped && fields.reason.value.trim() !== "" && (isOne || rateOf(fields) !== null);
  return { seen, isOffered, isReady, types };
}

/** A form's looks, and the order that follows one. */
function useLooks(props: OrderProps, fields: Fields) {
  const { what, which } = props;
  const looked = useSignal<Seen | null>(null);
  const changed = useSignal<number | null>(null);
  const { sending, problem, send } = useOrder();
  const ready = readyOf(what, which, fields, looked.value);
  const forget = (now: number | null): void => {
    looked.value = null;
    changed.value = now;
    fields.typed.value = "";
  };
  const see = async (): Promise<void> => {
    forget(null);
    looked.value = await send(() => look(what, which, fields));
  };
  const order = async ({ seen, isReady } = ready): Promise<void> => {
    if (seen === null || !isReady) return;
    // The store compares the number only: other messages may be as many.
    const now = await send(() => look(what, which, fields));
    if (now === null) return;
    if (!isSame(seen, now)) return forget(now.number);
    const done = await send(() =>
      which.id !== undefined ? orderOne(what, which.id, fields) : orderMany(what, which, fields, seen.number),
    );
    if (done === null) {
      const matching = problem.peek()?.count;
      if (matching !== undefined) forget(matching);
      return;
    }
    props.came.value = done;
    props.after();
    props.leave();
  };
  return { ready, changed: changed.value, sending: sending.value, problem: problem.value, see, order };
}

/** Why nothing was ordered, or why that is not known. */
function Refused({ problem, changed, isOne }: { problem: Problem | null; changed: number | null; isOne: boolean }) {
  const isDoubtful =
    problem !== null && !isOne && problem.code !== "no_look" && (problem.code === "no_answer" || problem.status >= 500);
  const jobs = (
    <a href={address(["jobs"])} target="_blank" rel="noopener noreferrer">
      Jobs
    </a>
  );
  return (
    <>
      {problem === null ? null : <Trouble problem={problem} />}
      {isDoubtful ? <p>See first whether the job is among the {jobs}.</p> : null}
      {changed === null ? null : (
        <p class="trouble" role="alert">
          The dead letters have changed since you looked, and nothing was ordered: {count(changed)} match now. See again
          what the order would do.
        </p>
      )}
    </>
  );
}

/** An order about dead letters: first what it would do with each, then the order itself. */
export function DeadLettersOrder(props: OrderProps) {
  const { what, which } = props;
  const isOne = which.id !== undefined;
  const fields: Fields = {
    reason: useSignal(""),
    type: useSignal(""),
    rate: useSignal("10"),
    typed: useSignal(""),
    isNothingThere: useSignal(false),
  };
  const { ready, changed, sending, problem, see, order } = useLooks(props, fields);
  const { seen, isOffered, isReady, types } = ready;
  return (
    <form
      class="decide"
      aria-label={titles[what]}
      onSubmit={(event) => {
        event.preventDefault();
        void see();
      }}
    >
      <p class="causes">
        {titles[what]}: {named(whichOf(which, fields))}. {causes[what]}
      </p>
      <FormFields of={fields} what={what} isOne={isOne} seen={seen} />
      <OperatorName who={props.who} />
      <Refused problem={problem} changed={changed} isOne={isOne} />
      {seen === null ? null : <Summary of={seen} />}
      {types && seen !== null ? (
        <Text label={`Type the number of messages, ${count(seen.number)}`} name="number" value={fields.typed} />
      ) : null}
      <p class="buttons">
        <button type="submit" disabled={sending}>
          {sending ? "Asking…" : seen === null ? "See what it would do" : "See it again"}
        </button>
        {!isOffered || seen === null ? null : (
          <button type="button" class="confirm" disabled={sending || !isReady} onClick={() => void order()}>
            {isOne ? titles[what] : `${titles[what]}: ${count(seen.number)}`}
          </button>
        )}
        <button type="button" onClick={props.leave}>
          {isOne ? "Leave it as it is" : "Leave them as they are"}
        </button>
      </p>
    </form>
  );
}

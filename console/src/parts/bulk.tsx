import { type Signal, useSignal } from "@preact/signals";

import { ApiError, get, inDoubt, post, session } from "../api/client";
import { type Job, type Match, type Preview, lastLeaseEnd, preview } from "../api/jobs";
import type { Approval, KeysPage, Problem, Session } from "../api/types";
import { address, place } from "../state/place";
import { OperatorName, Row, Text, useOrder } from "./fields";
import { AnswerFields, type Given, Looking, answerOf, base64Of, noAnswer } from "./settle";
import { FormTitle, Nothing, Section, Trouble } from "./show";
import { count, span, timeOf } from "./words";

type Kind = "none_done" | "done" | "refused";

interface KindWords {
  title: string;
  causes: string;
  confirm: string;
}

const one_answer =
  "Each of the records completes with the one answer that you give here, so it must be right for all of them: it " +
  "cannot name what differs between them. Each retry gets it, and nothing runs under these keys until the gateway " +
  "forgets them. This cannot be taken back.";

const kinds: Record<Kind, KindWords> = {
  none_done: {
    title: "None of these was done: let them run again",
    causes:
      "The work of each can run again: at its client's next retry, or by itself where the request is stored and has " +
      "not expired. Each that was done after all happens twice: a customer pays twice.",
    confirm: "Let them run again",
  },
  done: { title: "All of these were done", causes: one_answer, confirm: "Complete them" },
  refused: {
    title: "All of these were tried, and refused for good",
    causes: `Nothing runs again. ${one_answer}`,
    confirm: "Complete them with the refusal",
  },
};
const titles = { done: kinds.done.title, refused: kinds.refused.title };

/** The ages that the filter offers, in milliseconds. */
export const ages: Record<string, number> = {
  "10m": 600_000,
  "1h": 3_600_000,
  "6h": 21_600_000,
  "24h": 86_400_000,
  "168h": 604_800_000,
};

/** From so many records on the operator types the number. */
const typed_above = 20;

interface Counted {
  preview: Preview;
  match: Match;
  /** When the last attempt of these can no longer send. */
  leases_end: string | null;
  /** The store says that another number matches by now. */
  isOld: boolean;
}

/**
 * Counts what matches. Only records that were received before `until` do: a later one was in no look of the operator,
 * and does not change the count. Null: this count is the first.
 */
async function countNow(filters: Match, until: string | null): Promise<Counted> {
  const now = (await get<KeysPage>("/v1/keys?limit=1")).now;
  const age = filters["older_than"] ?? "";
  const before = ages[age] ?? (age === "" ? 0 : null);
  const at = before === null ? age : new Date(Date.parse(now) - before).toISOString();
  const match: Match = { ...filters, state: "unknown", older_than: until ?? at };
  const [found, leases_end] = await Promise.all([preview("keys.resolve", match), lastLeaseEnd(match)]);
  return { preview: found, match, leases_end, isOld: false };
}

/** What the order is about, in words. */
function wordsOf(match: Match): string {
  const given = ["scope", "operation"].filter((name) => match[name] !== undefined);
  return given.map((name) => `${name} ${match[name]}`).join(" and ");
}

function Count({ of: counted }: { of: Counted }) {
  const { preview: found, match } = counted;
  return (
    <>
      <p role="status">
        {found.is_exact ? "" : "At least "}<b>{count(found.count)}</b> unknown{" "}
        {found.count === 1 ? "record" : "records"} with {wordsOf(match)}, received before{" "}
        {timeOf(match["older_than"] ?? "")}. What is received later is not part of this. One that was received before and becomes unknown meanwhile is: the
        store compares the number.
      </p>
      {found.is_exact ? null : (
        <p class="contested">That is more than one job may have. Go back, and filter to match fewer.</p>
      )}
      {found.examples.length === 0 ? null : (
        <>
          <p class="note">
            {found.count > found.examples.length ? `The first ${found.examples.length} of them. ` : ""}
            Each opens in a tab of its own:
          </p>
          <ul class="examples">
            {found.examples.map((ref) => (
              <li key={ref}>
                <a class="ref" href={address(["operation", ref])} target="_blank" rel="noopener noreferrer">
                  {ref.slice(0, 8)}
                </a>
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}

const refusals: [string, string][] = [
  [
    "too early",
    "its attempt could still send: its lease, and evidence_grace behind it, had not ended when the order came. Look " +
      "again, and decide again",
  ],
  [
    "evidence says otherwise",
    "it is contested: evidence says that it ran, so nothing frees it. Complete it alone, with the answer that you find",
  ],
  ["another attempt, another state", "it was settled or ran again meanwhile. There is nothing to do"],
];

function WhatIsRefused() {
  return (
    <details>
      <summary>The job refuses a record that does not fit, and decides the others</summary>
      <dl>
        {refusals.map(([name, text]) => [<dt key={name}>{name}</dt>, <dd key={`${name} is`}>{text}.</dd>])}
      </dl>
      <p>A refused record stays as it is; the page of the job shows the verdict of each.</p>
    </details>
  );
}

interface FormProps {
  kind: Kind;
  of: Counted;
  who: Session;
  recount: () => Promise<void>;
  old: () => void;
  done: (made: Made) => void;
  leave: () => void;
}

interface Made {
  job: string | null;
  approval: string | null;
  records: number;
}

/** What the order says about each record: its answer, or that it may run again. */
function asOf(kind: Kind, answer: ReturnType<typeof answerOf> | null): Record<string, unknown> {
  if (kind === "none_done") return { as: "failed_retryable" };
  if (answer === null || typeof answer === "string") throw new Error("an order without its answer");
  const { status, headers, body } = answer;
  return { as: "completed", response: { status, headers, body_b64: base64Of(body) } };
}

function madeOf(answer: Partial<Job & Approval>, records: number): Made {
  const { job } = answer;
  if (typeof job === "string" && typeof answer.left === "number") return { job, approval: null, records };
  if (typeof answer.approval === "string") return { job: null, approval: answer.approval, records };
  throw new ApiError(inDoubt);
}

/** A whole number of records a second; null: it is none. */
function rateOf(text: string): number | null {
  const rate = /^\d{1,4}$/.test(text.trim()) ? Number(text) : 0;
  return rate >= 1 && rate <= 1_000 ? rate : null;
}

function lastsFor(records: number, rate: number | null): string {
  if (rate === null) return "Write a whole number from 1 to 1000.";
  const time = span(Math.max(1, records / rate));
  return `The job lasts about ${time}. A slow one leaves you time to look at what it does, and to cancel it.`;
}

/** A look counts for a release only if no attempt could send any more when it began. */
function isLate(looking: string | null, leases_end: string | null): boolean {
  return looking !== null && (leases_end === null || Date.parse(looking) > Date.parse(leases_end));
}

function Look(props: { of: Counted; from: Signal<string | null>; problem: Signal<Problem | null>; again: () => void }) {
  const { of: counted, from } = props;
  const isEarly = from.value !== null && !isLate(from.value, counted.leases_end);
  return (
    <>
      <Looking from={from} key_={{ locked_until: counted.leases_end }} attempt="The last of these attempts"
        problem={props.problem} again={props.again} />
      {isEarly ? (
        <p class="trouble" role="alert">
          You started to look before {timeOf(counted.leases_end ?? "")}, when the last attempt could still send. Start
          again after that.
        </p>
      ) : null}
      <p class="note">
        The store dates your look by the moment of that press. It refuses a record whose lease, and evidence_grace
        behind it (60 s by default), had not ended by then.
      </p>
    </>
  );
}

function Form(props: FormProps) {
  const { kind, of: counted, who } = props;
  const { title, causes, confirm } = kinds[kind];
  const evidence = useSignal("");
  const reason = useSignal("");
  const rate = useSignal("10");
  const typed = useSignal("");
  const given = useSignal<Given>(noAnswer);
  const looking = useSignal<string | null>(null);
  const { sending, problem, send } = useOrder();
  const number = counted.preview.count;
  const each = rateOf(rate.value);
  const answer = kind === "none_done" ? null : answerOf(given.value, kind, titles);
  const hasLooked = kind !== "none_done" || isLate(looking.value, counted.leases_end);
  const isTyped = number <= typed_above || typed.value.replaceAll(",", "").trim() === String(number);
  const isFilled = isTyped && each !== null && typeof answer !== "string";
  const isReady = !counted.isOld && number > 0 && hasLooked && isFilled;
  const order = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (!isReady) return;
    const looked = kind === "none_done" && looking.value !== null ? { observed_at: looking.value } : {};
    const decision = { evidence: evidence.value, reason: reason.value, ...asOf(kind, answer), ...looked };
    const body = { what: "keys.resolve", match: counted.match, order: decision, expected: number, rate: each };
    const made = await send(async () => madeOf(await post<Partial<Job & Approval>>("/v1/jobs", body), number));
    if (made !== null) return props.done(made);
    if (problem.peek()?.count !== undefined) {
      typed.value = "";
      props.old();
    }
  };
  const recount = async (): Promise<void> => {
    await props.recount();
    problem.value = null;
  };
  const isDoubtful = problem.value !== null && (problem.value.code === "no_answer" || problem.value.status >= 500);
  return (
    <form class="decide" aria-label={title} onSubmit={(event) => void order(event)}>
      <p class="causes">{causes}</p>
      {kind === "none_done" ? <Look of={counted} from={looking} problem={problem} again={() => {
        evidence.value = "";
      }} /> : null}
      <Row label="What you saw, and where" name="evidence"
        note="For example the provider's list of today. It stays in the evidence log of each.">
        <textarea id="evidence" required rows={2} disabled={!hasLooked} value={evidence.value} onInput={(event) => {
          evidence.value = event.currentTarget.value;
        }} />
      </Row>
      <Text label="Reason" name="reason" required value={reason} />
      {kind === "none_done" ? null : <AnswerFields of={given} decision={kind} named={titles} />}
      <Text label="Records a second" name="rate" required value={rate} note={lastsFor(number, each)} />
      {number <= typed_above ? null : (
        <Text label={`Type the number of records, ${count(number)}`} name="number" required value={typed} />
      )}
      <OperatorName who={who} />
      {problem.value === null ? null : <Trouble problem={problem.value} />}
      {isDoubtful ? (
        <p>
          See first whether the job is among the{" "}
          <a href={address(["jobs"])} target="_blank" rel="noopener noreferrer">Jobs</a>.
        </p>
      ) : null}
      {counted.isOld ? <p><button type="button" onClick={() => void recount()}>Count again</button></p> : null}
      <p class="buttons">
        <button type="submit" class="confirm" disabled={sending.value || !isReady}>
          {sending.value ? "Sending…" : `${confirm}: ${count(number)}`}
        </button>
        <button type="button" onClick={props.leave}>Leave them as they are</button>
      </p>
    </form>
  );
}

function Said({ of: made }: { of: Made }) {
  return (
    <p role="status" class="said">
      {made.job !== null ? (
        <>
          The job has begun: it decides about {count(made.records)} {made.records === 1 ? "record" : "records"}, one
          after another.{" "}
          <a href={address(["jobs", made.job])}>See what becomes of each, or cancel it</a>
        </>
      ) : (
        <>
          Nothing is done yet. Another operator must approve the order.{" "}
          <a href={address(["approvals", made.approval ?? ""])}>See the order</a>
        </>
      )}
    </p>
  );
}

function Kinds({ choose }: { choose: (kind: Kind) => void }) {
  return (
    <div class="spelt">
      {(Object.keys(kinds) as Kind[]).map((one) => [
        <button type="button" key={one} onClick={() => choose(one)}>{kinds[one].title}…</button>,
        <span key={`${one} causes`}>{kinds[one].causes}</span>,
      ])}
    </div>
  );
}

function Steps({ filters }: { filters: Match }) {
  const counted = useSignal<Counted | null>(null);
  const kind = useSignal<Kind | null>(null);
  const made = useSignal<Made | null>(null);
  const { sending, problem, send } = useOrder();
  // A count behind an open form keeps its end: what the operator looked at is the most that it can have.
  const recount = async (): Promise<void> => {
    const until = kind.peek() === null ? null : (counted.peek()?.match["older_than"] ?? null);
    const found = await send(() => countNow(filters, until));
    if (found !== null) counted.value = found;
  };
  const found = counted.value;
  const chosen = kind.value;
  const canDecide = found !== null && found.preview.is_exact && (found.preview.count > 0 || chosen !== null);
  if (made.value !== null) return <Said of={made.value} />;
  return (
    <>
      <Section title="1. Count them">
        {found?.isOld && chosen !== null ? null : (
          <p class="buttons">
            <button type="button" disabled={sending.value} onClick={() => void recount()}>
              {sending.value ? "Counting…" : found === null ? "Count the records that match" : "Count again"}
            </button>
          </p>
        )}
        {problem.value === null ? null : <Trouble problem={problem.value} />}
        {found === null ? <p class="note">This changes nothing.</p> : <Count of={found} />}
      </Section>
      {found === null || !canDecide ? null : (
        <Section title="2. Decide">
          {chosen === null ? (
            <Kinds choose={(one) => {
              kind.value = one;
            }} />
          ) : (
            <>
              <FormTitle>{kinds[chosen].title}</FormTitle>
              <Form key={chosen} kind={chosen} of={found} who={session.value as Session} recount={recount}
                old={() => {
                  counted.value = { ...found, isOld: true };
                }}
                done={(what) => {
                  made.value = what;
                }}
                leave={() => {
                  kind.value = null;
                }} />
            </>
          )}
          <WhatIsRefused />
        </Section>
      )}
    </>
  );
}

/** A decision about all unknown records that the filters of the address match. */
export function Bulk() {
  const who = session.value as Session;
  const filters: Match = {};
  for (const name of ["scope", "operation", "older_than"]) {
    const value = place.value.filters.get(name) ?? "";
    if (value !== "") filters[name] = value;
  }
  const isNarrow = filters["scope"] !== undefined || filters["operation"] !== undefined;
  const age = filters["older_than"];
  return (
    <>
      <p><a href={address(["unknown"], filters)}>Back to the list</a></p>
      {who.role !== "operator" ? (
        <Nothing>Deciding needs the role operator; you have the role {who.role}.</Nothing>
      ) : !isNarrow ? (
        <Nothing>
          Filter the list by a scope or an operation first: nobody decides about a whole store by accident.
        </Nothing>
      ) : (
        <>
          <p>
            All unknown records with {wordsOf(filters)}
            {age === undefined ? "" : age in ages ? `, received more than ${age} ago` : `, older than ${age}`}.
          </p>
          <Steps key={JSON.stringify(filters)} filters={filters} />
        </>
      )}
    </>
  );
}

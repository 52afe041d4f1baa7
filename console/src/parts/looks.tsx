import type { Evidence, Key, KeySummary, Status } from "../api/types";
import { now } from "../state/live";
import { Moment, Nothing } from "./show";
import { count, span } from "./words";

/** What became of asking about an unknown record, and what comes next. */
export function Plan({ of: key }: { of: KeySummary }) {
  const asked = key.reconcile_attempts === 0 ? "not asked yet" : `asked ${times(key.reconcile_attempts)}`;
  // A provider that fails is left alone for a while: then the moment has passed.
  const after = key.reconcile_after;
  if (after !== null) return <>{asked}, {isPast(after) ? "due" : "next"} <Moment at={after} /></>;
  if (isLeft(key)) return <b>{key.reconcile_attempts === 0 ? "" : `${asked}, then `}left to operators</b>;
  return <>{asked}, due now</>;
}

const times = (number: number): string => (number === 1 ? "once" : number === 2 ? "twice" : `${count(number)} times`);
export const isPast = (moment: string): boolean => Date.parse(moment) < now.value;

/** Nobody is asked about it any more: an operator decides. */
export function isLeft(key: KeySummary): boolean {
  return key.state === "unknown" && key.reconcile_after === null && (key.reconcile_attempts > 0 || key.provider === "");
}

const findings: Record<string, string> = {
  found: "“It was done”",
  failed: "“It was tried, and failed for good”",
  not_there: "“Nothing of it is there”",
  later: "an answer that no rule of the settings fits: it decides nothing",
  no_answer: "no answer",
};

/** What a provider said: evidence that the gateway wrote as JSON, or a word. */
function findingOf(evidence: string | null): { said: string; status: number | null } {
  if (evidence === null) return { said: "withheld from your role", status: null };
  try {
    const read = JSON.parse(evidence) as { said?: unknown; status?: unknown };
    const said = typeof read.said === "string" ? (findings[read.said] ?? read.said) : evidence;
    return { said, status: typeof read.status === "number" ? read.status : null };
  } catch {
    return { said: findings[evidence] ?? evidence, status: null };
  }
}

const isLook = (one: Evidence): boolean => one.source.startsWith("poll:") || one.source.startsWith("event:");

function Look({ of: one, fence }: { of: Evidence; fence: number }) {
  const { said, status } = findingOf(one.evidence);
  const name = one.source.slice(one.source.indexOf(":") + 1);
  const asked = one.source.startsWith("event:") ? `${name} sent an event` : `${name} was asked`;
  const moved = one.applied && one.before !== one.after;
  return (
    <li>
      <Moment at={one.observed_at ?? one.recorded_at} />
      <span>
        {one.evidence === "" ? (
          <b>The gateway asks {name} no more</b>
        ) : (
          <>{asked}: <b>{said}</b>{status === null ? "" : ` (status ${status})`}</>
        )}
      </span>
      <span class="note">
        {one.fence === fence ? "" : `About attempt ${one.fence}; now it is attempt ${fence}. `}
        {moved ? `The record went from ${one.before} to ${one.after}. ` : "It settled nothing. "}
        {one.reason}
      </span>
    </li>
  );
}

/** Whether the provider answers now, as this process knows it. */
export function Answers({ name, status }: { name: string; status: Status | null }) {
  const seen = status?.providers.find((one) => one.name === name);
  if (status === null) return null;
  if (seen === undefined) {
    return <b class="contested">✗ is not in the settings of this process, which does not ask it</b>;
  }
  const failure = seen.last_failure;
  if (seen.up && (failure === null || seen.last_answer_seconds !== null)) {
    const isAsked = seen.last_answer_seconds !== null;
    return isAsked ? <span class="good">✓ answers</span> : <>not asked by this process yet</>;
  }
  return (
    <b class="contested">
      ✗ does not answer
      {failure === null ? "" : `; last failure ${span(failure.seconds)} ago: ${failure.reason}, ${failure.detail}`}
    </b>
  );
}

/** Each look of a provider at one record, the latest first. */
export function Looks({ of: key, status }: { of: Key; status: Status | null }) {
  const looks = key.evidence.filter(isLook).reverse();
  const others = key.evidence.length - looks.length;
  const isNobodys = key.provider === "" && looks.length === 0 && isLeft(key);
  return (
    <>
      {key.provider === "" ? null : <p>{key.provider} <Answers name={key.provider} status={status} /></p>}
      {key.state === "unknown" && !isNobodys ? <p><Plan of={key} /></p> : null}
      {looks.length > 0 ? (
        <ol class="timeline">
          {looks.map((one) => (
            <Look key={`${one.recorded_at} ${one.source} ${one.reason}`} of={one} fence={key.fence} />
          ))}
        </ol>
      ) : key.provider === "" ? (
        <Nothing>
          No provider is configured for this operation, so the gateway asks nobody: look yourself where the effect would
          be.
        </Nothing>
      ) : (
        <Nothing>
          {key.reconcile_attempts === 0
            ? "It has not been asked about this record yet."
            : "It has said nothing that counts so far. The log keeps what settles something or ends the questions."}
        </Nothing>
      )}
      {key.evidence_damaged === undefined ? null : (
        <p class="contested">The evidence cannot be read: {key.evidence_damaged}</p>
      )}
      {others > 0 ? <p class="note">There is further evidence: see the page of the record.</p> : null}
    </>
  );
}

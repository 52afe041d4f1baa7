import type { ComponentChildren } from "preact";

import { get, session } from "../api/client";
import { type RetriesPage, type Retry, outcomes } from "../api/retries";
import type { Evidence, Key, Session } from "../api/types";
import { Choices } from "../parts/settle";
import { Moment, Nothing, Section, StateTag, Trouble } from "../parts/show";
import { meaningOf } from "../parts/words";
import { address, place } from "../state/place";
import { useLive } from "../state/live";

interface Step {
  at: string | null;
  what: string;
  more?: string;
}

const decoder = new TextDecoder("utf-8", { fatal: true });

/** A stored body as text; null: it is none. */
function textOf(base64: string): string | null {
  try {
    return decoder.decode(Uint8Array.from(atob(base64), (one) => one.charCodeAt(0)));
  } catch {
    return null;
  }
}

function stepOf(one: Evidence): Step {
  const moved = one.before !== null && one.after !== null && one.before !== one.after;
  const effect = moved ? `${one.before} → ${one.after}` : "kept, and decided nothing";
  const reason = one.reason === "" ? "" : `. ${one.reason}`;
  return {
    at: one.observed_at ?? one.recorded_at,
    what: `Evidence of ${one.source} about attempt ${one.fence}: ${effect}`,
    more: `${one.evidence ?? "withheld from your role"}${reason}`,
  };
}

/** Where the end of the retention means something. */
const atExpiry: Partial<Record<Key["state"], string>> = {
  completed: "The gateway no longer keeps the answer, and refuses retries",
  pending: "The stored request expires: if it has not run by then, retries get a timeout",
  failed_retryable: "The gateway forgets the key",
};

const whyUnknown: Record<string, string> = {
  contested: "Evidence contradicts the release: the outcome is unknown again",
  store_restored: "The store was restored from a backup: what happened since then is unknown",
  event_said_failed: "An event says that it failed, and names no answer",
};

const byTime = (a: Step, b: Step): number => (a.at ?? "").localeCompare(b.at ?? "");

/** What happened, as far as the record knows it. */
export function timeline(key: Key): Step[] {
  const steps: Step[] = [{ at: key.created_at, what: "Received, and the key reserved" }];
  if (key.locked_until !== null && (key.state === "in_progress" || key.state === "unknown")) {
    const sent = key.dispatched ? "its request was sent or may have been" : "its request was not sent";
    steps.push({ at: key.locked_until, what: `The lease of attempt ${key.fence} ends`, more: sent });
  }
  if (key.state === "unknown") {
    steps.push({ at: key.changed_at, what: whyUnknown[key.last_error_code] ?? `The outcome became unknown: ${key.last_error_code}` });
  }
  for (const one of key.evidence) steps.push(stepOf(one));
  if (key.completed_at !== null) {
    const status = key.response === null ? "" : ` with status ${key.response.status}`;
    steps.push({ at: key.completed_at, what: `Completed${status}; retries get this answer` });
  }
  if (key.reconcile_after !== null && key.state === "unknown") {
    steps.push({ at: key.reconcile_after, what: `The gateway asks ${key.provider} next` });
  }
  if (key.expires_at !== null && atExpiry[key.state] !== undefined) steps.push({ at: key.expires_at, what: atExpiry[key.state] ?? "" });
  if (key.tombstone_until !== null) {
    steps.push({ at: key.tombstone_until, what: "The gateway forgets the key: a request with it runs as new" });
  }
  return steps;
}

function Fact(props: { name: string; children: ComponentChildren }) {
  return (
    <>
      <dt>{props.name}</dt>
      <dd>{props.children}</dd>
    </>
  );
}

/** A page of another program, in a tab of its own; it does not learn where the link was. */
function Elsewhere(props: { to: string | null; children: ComponentChildren }) {
  if (props.to === null) return <>{props.children}</>;
  return <a href={props.to} target="_blank" rel="noopener noreferrer">{props.children}</a>;
}

function Facts({ of: key }: { of: Key }) {
  return (
    <dl class="facts">
      <Fact name="scope">{key.scope}</Fact>
      <Fact name="operation">{key.operation}</Fact>
      <Fact name="attempt">{key.fence}</Fact>
      {key.upstream_reference === "" ? null : <Fact name="upstream's reference"><Elsewhere to={key.upstream_link}>{key.upstream_reference}</Elsewhere></Fact>}
      {key.provider === "" ? null : (
        <Fact name="provider">{key.provider}, asked {key.reconcile_attempts} times</Fact>
      )}
      {key.release_basis === null ? null : <Fact name="why it may run again">{key.release_basis}</Fact>}
      {key.last_error_code === "" ? null : <Fact name="last error">{key.last_error_code}</Fact>}
      {key.trace_id === null ? null : <Fact name="trace"><Elsewhere to={key.trace_link}>{key.trace_id}</Elsewhere></Fact>}
      <Fact name="messages">
        <a href={address(["messages"], { operation_ref: key.ref })}>that its work wrote to the outbox</a>
      </Fact>
      <Fact name="request's fingerprint">{key.request_fingerprint}</Fact>
      <Fact name="reference">{key.ref}</Fact>
    </dl>
  );
}

function Answer({ of: key }: { of: Key }) {
  const response = key.response;
  if (response === null) {
    return (
      <Nothing>
        {key.state === "completed" || key.state === "expired" ? "The answer is no longer kept." : "There is none yet."}
      </Nothing>
    );
  }
  const text = response.body_b64 === null ? null : textOf(response.body_b64);
  return (
    <>
      <p>
        <b>{response.status}</b>
      </p>
      {response.headers === null ? (
        <p class="note">Fields and body need the role support.</p>
      ) : (
        <>
          <ul class="fields">
            {response.headers.map(([name, value]) => (
              <li key={`${name}:${value}`}>
                <code>{name}: {value}</code>
              </li>
            ))}
          </ul>
          {!response.body_stored ? (
            <p class="note">The body was too large to be stored.</p>
          ) : text === null || text === "" ? (
            <p class="note">{text === "" || response.body_b64 === null ? "The body is empty." : "The body is no text."}</p>
          ) : (
            <pre tabIndex={0}>{text}</pre>
          )}
        </>
      )}
    </>
  );
}

/** The retries that this process remembers, as steps. */
function retriesOf(retries: Retry[]): Step[] {
  return retries.map((one) => {
    const status = one.status === 0 ? "the client left before" : `status ${one.status}`;
    const differences = one.differences.map((each) => `${each.part}: ${each.stored} at first, ${each.sent} then`);
    const step: Step = { at: one.at, what: `Retry${one.client === null ? "" : ` from ${one.client}`}: ${outcomes[one.outcome]} (${status})` };
    const more = differences.length > 0 ? differences.join("; ") : one.why;
    return more === null ? step : { ...step, more };
  });
}

function WhatHappened({ of: key, who }: { of: Key; who: Session }) {
  const maySee = who.role !== "viewer";
  const { loaded } = useLive<RetriesPage>(() => (maySee ? get<RetriesPage>(`/v1/retries?ref=${key.ref}`) : Promise.resolve({ retries: [] })), 5_000, [key.ref]);
  const steps = [...timeline(key), ...retriesOf(loaded.value.value?.retries ?? [])].sort(byTime);
  return (
    <Section title="What happened">
      {key.evidence_damaged === undefined ? null : <p class="note">The evidence cannot be read: {key.evidence_damaged}</p>}
      {loaded.value.problem === null ? null : <Trouble problem={loaded.value.problem} />}
      <ol class="timeline">
        {steps.map((step) => (
          <li key={`${step.at} ${step.what} ${step.more ?? ""}`}>
            <Moment at={step.at} /> <span>{step.what}</span>
            {step.more === undefined ? null : <span class="note">{step.more}</span>}
          </li>
        ))}
      </ol>
      <p class="note">
        {maySee ? "Of retries this process remembers the newest, since its start at the most." : "Retries need the role support; you have the role viewer."}
      </p>
    </Section>
  );
}

/** One record: what happened, what is stored, and what may be decided. */
export function Operation() {
  const ref = place.value.path[1] ?? "";
  const { loaded, set, again } = useLive(() => get<Key>(`/v1/keys/${encodeURIComponent(ref)}`), 3_000, [ref]);
  const { value: key, problem } = loaded.value;
  if (key === null) {
    if (problem === null) return <p class="loading">Reading the record…</p>;
    return problem.status === 404 ? (
      <Nothing>
        No record has the reference {ref}. The reference may be wrong, or the gateway has forgotten the record: that does not prove that nothing
        ran. <a href={address(["find"])}>Find another one</a>
      </Nothing>
    ) : (
      <Trouble problem={problem} />
    );
  }
  return (
    <>
      {problem === null ? null : <Trouble problem={problem} />}
      <p class="state-line">
        <StateTag state={key.state} /> {meaningOf(key)}
        {key.contested ? (
          <b class="contested"> Contested: evidence says otherwise. Compare it with the provider's books.</b>
        ) : null}
      </p>
      <Facts of={key} />
      <Section title="What you can do">
        <Choices of={key} who={session.value as Session} after={(decided) => (decided === null ? again() : set(decided))} />
      </Section>
      <WhatHappened of={key} who={session.value as Session} />
      <Section title="Stored answer">
        <Answer of={key} />
      </Section>
    </>
  );
}

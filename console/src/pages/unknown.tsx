import { useSignal } from "@preact/signals";
import { type ComponentChildren, Fragment } from "preact";

import { get, query, session } from "../api/client";
import type { Key, KeySummary, KeysPage, Session, Status } from "../api/types";
import { Bulk, ages } from "../parts/bulk";
import { Choice, Text, useField } from "../parts/fields";
import { Answers, Looks, Plan, isLeft, isPast } from "../parts/looks";
import { Choices } from "../parts/settle";
import { Moment, Nothing, Section, StateTag, Trouble } from "../parts/show";
import { count, meaningOf } from "../parts/words";
import { useLive } from "../state/live";
import { address, place, setFilters } from "../state/place";

/** What one page reads: most stores never have as many unknown records, and then the order is that of all. */
const read_max = 1_000;
/** What a group shows at first. */
const shown_first = 50;

function urgency(key: KeySummary): number {
  return key.contested ? 0 : isLeft(key) ? 1 : 2;
}

const since = (key: KeySummary): number => Date.parse(key.changed_at ?? key.created_at ?? "");

/** Contested ones first, then those that nobody else settles, and the oldest of each first. */
const byUrgency = (a: KeySummary, b: KeySummary): number => urgency(a) - urgency(b) || since(a) - since(b);

export interface Group {
  /** Empty: no provider. */
  provider: string;
  keys: KeySummary[];
}

/** The records by the provider that is asked about them; the group with the most urgent record first. */
export function groupsOf(keys: KeySummary[]): Group[] {
  const groups = new Map<string, KeySummary[]>();
  for (const key of [...keys].sort(byUrgency)) groups.set(key.provider, [...(groups.get(key.provider) ?? []), key]);
  return [...groups].map(([provider, its]) => ({ provider, keys: its }));
}

/** A page of the list, and the opened record, also when it is settled meanwhile: its form stays. */
function withOpened(keys: KeySummary[], opened: Key | null): KeySummary[] {
  if (opened === null) return keys;
  return [...keys.filter((one) => one.ref !== opened.ref), opened];
}

const whyUnknown: Record<string, string> = {
  contested: "evidence contradicts its release",
  store_restored: "the store was restored from a backup",
  event_said_failed: "an event says that it failed, and names no answer",
};

/** A page of another program, in a tab of its own. */
function Elsewhere({ to, text }: { to: string | null; text: string | null }) {
  if (to === null) return <>{text}</>;
  return <a href={to} target="_blank" rel="noopener noreferrer">{text}</a>;
}

function WhatWeKnow({ of: key }: { of: Key }) {
  const reference = key.upstream_reference;
  const sent = key.dispatched ? "its request was sent, or may have been" : "its request was not sent";
  const facts: [string, ComponentChildren][] = [
    ["state", <><StateTag state={key.state} /> {meaningOf(key)}</>],
    ["attempt", `${key.fence}; ${sent}`],
    ["the attempt could send until", <Moment at={key.locked_until} />],
    ["received", <Moment at={key.created_at} />],
    ["changed", <Moment at={key.changed_at} />],
    ["why", whyUnknown[key.last_error_code] ?? key.last_error_code],
    ["upstream's reference", reference && <Elsewhere to={key.upstream_link} text={reference} />],
    ["request", key.request_stored
      ? "stored: if it was not done, the gateway runs it by itself"
      : "not stored: if it was not done, the client's next retry runs it"],
    ["trace", key.trace_id && <Elsewhere to={key.trace_link} text={key.trace_id} />],
    ["scope", key.scope],
    ["operation", key.operation],
  ];
  return (
    <dl class="facts">
      {facts.filter(([, value]) => value !== "" && value !== null).map(([name, value]) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
    </dl>
  );
}

/** One record: both sides, and the decisions. */
function Opened(props: { of: Key; status: Status | null; after: (key: Key | null) => void }) {
  const { of: key } = props;
  return (
    <>
      <div class="sides">
        <section aria-label="What we know">
          <h3>What we know</h3>
          <WhatWeKnow of={key} />
        </section>
        <section aria-label="What the provider said">
          <h3>What the provider said</h3>
          <Looks of={key} status={props.status} />
        </section>
      </div>
      <section aria-label="What you can do">
        <h3>What you can do, and what it causes</h3>
        <Choices of={key} who={session.value as Session} isSpelt after={props.after} />
      </section>
      <p>
        <a href={address(["operation", key.ref])}>The page of this record: its retries, all evidence and its answer</a>
      </p>
    </>
  );
}

interface RowProps {
  of: KeySummary;
  opened: Key | null;
  isOpen: boolean;
  status: Status | null;
  after: (key: Key | null) => void;
}

function UnknownRow({ of: key, opened, isOpen, status, after }: RowProps) {
  const filters = Object.fromEntries(place.value.filters);
  return (
    <li class={isOpen ? "open" : ""}>
      <div class="head">
        <a href={address(["unknown"], { ...filters, open: isOpen ? "" : key.ref })} aria-expanded={isOpen}>
          <span aria-hidden="true">{isOpen ? "▾" : "▸"}</span> <span class="ref">{key.ref.slice(0, 8)}</span>
          {key.contested ? <b class="contested"> contested</b> : null}
        </a>
        <span>
          {key.state === "unknown" ? "unknown since " : <><StateTag state={key.state} /> since </>}
          <Moment at={key.changed_at} />
        </span>
        <span>{key.scope} · {key.operation}</span>
        <span>{key.state === "unknown" ? <Plan of={key} /> : "decided"}</span>
      </div>
      {isOpen && opened === null ? <p class="loading">Reading the record…</p> : null}
      {isOpen && opened !== null ? <Opened of={opened} status={status} after={after} /> : null}
    </li>
  );
}

interface GroupProps {
  of: Group;
  /** All records of the group are on this page. */
  isWhole: boolean;
  row: (key: KeySummary) => ComponentChildren;
  status: Status | null;
}

function GroupOf(props: GroupProps) {
  const { provider, keys } = props.of;
  const isAll = useSignal(false);
  const unknown = keys.filter((one) => one.state === "unknown");
  const left = unknown.filter(isLeft).length;
  const contested = unknown.filter((one) => one.contested).length;
  const next = unknown.map((one) => one.reconcile_after).filter((one) => one !== null).sort()[0] ?? null;
  // The opened record stays, wherever a decision moves it.
  const open = place.value.filters.get("open");
  const shown = keys.filter((one, index) => isAll.value || index < shown_first || one.ref === open);
  return (
    <Section title={provider === "" ? "No provider: an operator decides" : `Provider ${provider}`}>
      <p>
        <b>{count(unknown.length)}</b> {unknown.length === 1 ? "record" : "records"}
        {props.isWhole ? "" : " on this page"}
        {contested === 0 ? null : <>, <b class="contested">{count(contested)} contested</b></>}
        {left === 0 ? "" : `, ${count(left)} left to operators`}
        {next === null ? "" : isPast(next) ? ", a question is due" : <>, next question <Moment at={next} /></>}
        {provider === "" ? null : <>. {provider} <Answers name={provider} status={props.status} /></>}
      </p>
      <ol class="unknowns">{shown.map(props.row)}</ol>
      {shown.length === keys.length ? null : (
        <button type="button" onClick={() => {
          isAll.value = true;
        }}>
          Show {count(keys.length - shown.length)} more
        </button>
      )}
    </Section>
  );
}

function Filters({ its }: { its: Filtered }) {
  const [scope, operation, older] = [useField(its.scope), useField(its.operation), useField(its.older)];
  const known = ["", ...Object.keys(ages)];
  // An address may name another age, or a moment.
  const offered = known.includes(older.value) ? known : [...known, older.value];
  return (
    <form role="search" class="search" onSubmit={(event) => {
      event.preventDefault();
      const given = { scope: scope.value.trim(), operation: operation.value.trim(), older_than: older.value };
      setFilters({ ...given, cursor: "", open: "" });
    }}>
      <Text label="Scope" name="scope" value={scope} />
      <Text label="Operation" name="operation" value={operation} />
      <Choice label="Received longer ago than" name="older" value={older}
        of={offered.map((one) => [one, one === "" ? "any age" : one])} />
      <button type="submit">Filter</button>
    </form>
  );
}

type Filtered = Record<"scope" | "operation" | "older" | "contested", string>;

function filtered(): Filtered {
  const of = (name: string): string => place.value.filters.get(name) ?? "";
  return { scope: of("scope"), operation: of("operation"), older: of("older_than"), contested: of("contested") };
}

function Tabs({ scope, operation, older, contested }: Filtered) {
  const its = { scope, operation, older_than: older };
  const isAll = contested === "";
  return (
    <nav class="tabs" aria-label="Which records">
      <a href={address(["unknown"], its)} aria-current={isAll ? "page" : undefined}>all unknown</a>
      <a href={address(["unknown"], { ...its, contested: "true" })} aria-current={isAll ? undefined : "page"}>
        only contested
      </a>
    </nav>
  );
}

function NoneHere({ hasMore, isFiltered }: { hasMore: boolean; isFiltered: boolean }) {
  if (hasMore) return <Nothing>None among the records that were read; there are more: see the next page.</Nothing>;
  if (isFiltered) return <Nothing>No unknown record matches.</Nothing>;
  return <Nothing>No outcome is unknown. That is normal: the gateway knows how each request ended.</Nothing>;
}

/** The way to a decision about all that match, or why there is none. */
function ToAll({ scope, operation, older, contested }: Filtered) {
  const who = session.value as Session;
  return (
    <Section title="Decide about many at once">
      {who.role !== "operator" ? (
        <Nothing>Deciding needs the role operator; you have the role {who.role}.</Nothing>
      ) : contested !== "" ? (
        <Nothing>Decide about each contested record alone: only the answer that you find for it completes it.</Nothing>
      ) : scope === "" && operation === "" ? (
        <Nothing>Filter by a scope or an operation first: nobody decides about a whole store by accident.</Nothing>
      ) : (
        <p>
          <a href={address(["unknown", "all"], { scope, operation, older_than: older })}>
            Decide about all unknown records that these filters match…
          </a>
        </p>
      )}
    </Section>
  );
}

function List() {
  const its = filtered();
  const { scope, operation, older, contested } = its;
  const cursor = place.value.filters.get("cursor") ?? "";
  const open = place.value.filters.get("open") ?? "";
  const wanted = { state: "unknown", scope, operation, older_than: older, contested, cursor, limit: read_max };
  const parameters = query(wanted);
  const { loaded, again } = useLive(() => get<KeysPage>(`/v1/keys${parameters}`), 10_000, [parameters]);
  const status = useLive(() => get<Status>("/v1/status?max_age=28"), 10_000, []).loaded.value.value;
  const read = async (): Promise<Key | null> => (open === "" ? null : get<Key>(`/v1/keys/${encodeURIComponent(open)}`));
  const record = useLive(read, 3_000, [open]);
  const { value, problem } = loaded.value;
  const { value: opened, problem: unread } = record.loaded.value;
  const groups = groupsOf(withOpened(value?.keys ?? [], opened));
  const next = value?.next ?? null;
  const after = (decided: Key | null): void => {
    if (decided === null) record.again();
    else record.set(decided);
    again();
  };
  return (
    <>
      <Filters its={its} />
      <Tabs {...its} />
      {problem === null ? null : <Trouble problem={problem} />}
      {unread === null ? null : <Trouble problem={unread} />}
      {value === null && problem === null ? <p class="loading">Reading records…</p> : null}
      {value !== null && groups.length === 0 ? (
        <NoneHere hasMore={next !== null} isFiltered={cursor !== "" || Object.values(its).some((one) => one !== "")} />
      ) : null}
      {value === null || next === null ? null : (
        <p class="note">
          There are {count(value.counts.unknown)} unknown records in the store, and one page reads {count(read_max)} at
          the most. Each page shows the most urgent of its own first; filter to see fewer.
        </p>
      )}
      {groups.map((one) => (
        <GroupOf key={one.provider} of={one} isWhole={cursor === "" && next === null} status={status} row={(key) => (
          <UnknownRow key={key.ref} of={key} opened={opened} isOpen={key.ref === open} status={status} after={after} />
        )} />
      ))}
      {next === null ? null : (
        <button type="button" onClick={() => setFilters({ cursor: next, open: "" })}>Next page</button>
      )}
      <ToAll {...its} />
    </>
  );
}

/** The records whose outcome is unknown: one by one, or all that match. */
export function Unknown() {
  return place.value.path[1] === "all" ? <Bulk /> : <List />;
}

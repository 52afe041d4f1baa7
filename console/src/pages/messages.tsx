import { type Signal, useSignal } from "@preact/signals";

import { ApiError, get, inDoubt, post, query, session } from "../api/client";
import {
  type Message,
  type MessageState,
  type MessageSummary,
  type MessagesPage,
  type Which,
  histories,
  listStates,
  messageStates,
} from "../api/messages";
import type { Session, Status } from "../api/types";
import { type Came, CameOf, DeadLettersOrder } from "../parts/dead_letters";
import { OperatorName, Text, useField, useOrder } from "../parts/fields";
import { Moment, Nothing, Ref, Section, Trouble } from "../parts/show";
import { Table } from "../parts/table";
import { count, span } from "../parts/words";
import { address, place, setFilters } from "../state/place";
import { useLive } from "../state/live";

const states = Object.keys(messageStates) as MessageState[];
const signs: Record<MessageState, string> = { waiting: "…", delivered: "✓", dead: "✗", discarded: "–" };

function StateOf({ of: one }: { of: MessageSummary }) {
  return (
    <span class={`state ${one.state}`} title={messageStates[one.state]}>
      <span aria-hidden="true">{signs[one.state]}</span> {one.in_flight ? "being sent" : one.state}
    </span>
  );
}

/** How far each destination is behind. */
function Lag() {
  const { loaded } = useLive(() => get<Status>("/v1/status?max_age=28"), 10_000, []);
  const { value, problem } = loaded.value;
  if (value === null)
    return problem === null ? <p class="loading">Asking the gateway…</p> : <Trouble problem={problem} />;
  if (value.outbox === null) {
    return (
      <Nothing>
        {value.store.up
          ? "This store has no outbox, which is normal for all but SQLite, PostgreSQL and MySQL; or it did not " +
            "answer when the messages were counted."
          : "The store does not answer, so nobody can count its messages: see System."}
      </Nothing>
    );
  }
  if (value.outbox.length === 0) {
    return (
      <Nothing>
        No message waits, no letter is dead, and this gateway's settings have no destination. That is normal where no
        service writes messages, by the library or the SQL face.
      </Nothing>
    );
  }
  const to = (state: MessageState, destination: string): string => address(["messages"], { state, destination });
  const rows = value.outbox.map((one) => ({
    key: one.destination,
    cells: [
      one.destination,
      one.waiting === 0 ? "none" : <a href={to("waiting", one.destination)}>{count(one.waiting)}</a>,
      one.waiting === 0 ? "nothing waits" : span(one.oldest_seconds),
      one.dead === 0 ? (
        "none"
      ) : (
        <a href={to("dead", one.destination)}>
          <b class="contested">✗ {count(one.dead)}</b>
        </a>
      ),
    ],
  }));
  return (
    <>
      <p class="note">
        Normal: the oldest message waits for seconds, and no letter is dead. If messages wait long, their destination
        does not accept them (see their last error), or no process has it in its settings.
      </p>
      <Table name="Destinations" columns={["destination", "waiting", "the oldest waits", "dead letters"]} rows={rows} />
    </>
  );
}

/** The orders about all dead letters that the filters name. */
function Orders({
  which,
  who,
  came,
  after,
}: {
  which: Which;
  who: Session;
  came: Signal<Came | null>;
  after: () => void;
}) {
  const open = useSignal<"redrive" | "discard" | null>(null);
  if (who.role !== "operator")
    return <Nothing>Sending again and discarding need the role operator; you have the role {who.role}.</Nothing>;
  const what = open.value;
  if (what !== null) {
    return (
      <DeadLettersOrder
        key={what}
        what={what}
        which={which}
        who={who}
        came={came}
        after={after}
        leave={() => {
          open.value = null;
        }}
      />
    );
  }
  return (
    <div class="buttons">
      <button
        type="button"
        onClick={() => {
          came.value = null;
          open.value = "redrive";
        }}
      >
        Send again…
      </button>
      <button
        type="button"
        onClick={() => {
          came.value = null;
          open.value = "discard";
        }}
      >
        Discard for good…
      </button>
    </div>
  );
}

function Rows({ of: messages }: { of: MessageSummary[] }) {
  return (
    <Table
      columns={["message", "state", "destination", "type", "age", "attempts", "last error"]}
      rows={messages.map((one) => ({
        key: one.id,
        cells: [
          <a class="ref" href={address(["messages", one.id])}>
            {one.id.slice(0, 8)}
          </a>,
          <>
            <StateOf of={one} />
            {one.may_have_arrived ? ", may have arrived" : ""}
          </>,
          one.destination,
          one.type,
          <Moment at={one.created_at} />,
          one.attempts,
          one.last_error,
        ],
      }))}
    />
  );
}

/** Why the list is empty. */
function noneOf(state: MessageState | "", destination: string, record: string): string {
  if (record !== "")
    return (
      "The work of this record wrote no such message, or the gateway has forgotten it. Services write messages by the " +
      "library or the SQL face."
    );
  const to = destination === "" ? "" : ` to ${destination}`;
  if (state === "dead") return `There is no dead letter${to}. That is normal.`;
  if (state === "waiting") return `No message${to} waits. That is normal: the relay sends each within seconds.`;
  return `No message${to} is ${state}, or the gateway has forgotten it.`;
}

function Filters({ state, destination, record }: { state: MessageState | ""; destination: string; record: string }) {
  const wanted = useField(destination);
  // A link to a destination fills the form of a page that is open already.
  return (
    <>
      <nav class="tabs" aria-label="States of messages">
        {record === "" ? null : (
          <a
            href={address(["messages"], { destination, operation_ref: record })}
            aria-current={state === "" ? "page" : undefined}
          >
            all
          </a>
        )}
        {states.map((one) => (
          <a
            key={one}
            href={address(["messages"], { state: one, destination, operation_ref: record })}
            aria-current={state === one ? "page" : undefined}
          >
            <span aria-hidden="true">{signs[one]}</span> {one === "dead" ? "dead letters" : one}
          </a>
        ))}
      </nav>
      <form
        role="search"
        class="search"
        onSubmit={(event) => {
          event.preventDefault();
          setFilters({ destination: wanted.value.trim(), cursor: "" });
        }}
      >
        <Text label="Destination" name="destination" value={wanted} />
        <button type="submit">Show</button>
      </form>
    </>
  );
}

function List() {
  const who = session.value as Session;
  const filters = place.value.filters;
  const record = filters.get("operation_ref") ?? "";
  // Of one record they are few: all states at once.
  const state = (filters.get("state") ?? (record === "" ? "waiting" : "")) as MessageState | "";
  const destination = filters.get("destination") ?? "";
  const cursor = filters.get("cursor") ?? "";
  const came = useSignal<Came | null>(null);
  const parameters = query({ state, destination, operation_ref: record, cursor, limit: 50 });
  const { loaded, again } = useLive(() => get<MessagesPage>(`/v1/outbox${parameters}`), 5_000, [parameters]);
  const { value, problem } = loaded.value;
  return (
    <>
      <Section title="Lag">
        <Lag />
      </Section>
      <Section title="Messages">
        <Filters state={state} destination={destination} record={record} />
        {record === "" ? null : (
          <p>
            Only those of the record <Ref of={record} />.{" "}
            <a href={address(["messages"], { state, destination })}>Show those of all records</a>
          </p>
        )}
        {state === "" ? null : <p class="note">{listStates[state]}</p>}
        <CameOf of={came} />
        {state === "dead" && record === "" ? (
          <Orders
            key={destination}
            which={destination === "" ? {} : { destination }}
            who={who}
            came={came}
            after={again}
          />
        ) : null}
        {problem === null || problem.code === "not_found" ? null : <Trouble problem={problem} />}
        {problem?.code === "not_found" ? (
          <Nothing>{problem.detail}</Nothing>
        ) : value === null ? (
          problem === null ? (
            <p class="loading">Reading messages…</p>
          ) : null
        ) : value.messages.length === 0 ? (
          <Nothing>{noneOf(state, destination, record)}</Nothing>
        ) : (
          <Rows of={value.messages} />
        )}
        {value?.next ? (
          <button type="button" onClick={() => setFilters({ cursor: value.next ?? "" })}>
            Next page
          </button>
        ) : null}
      </Section>
    </>
  );
}

/** Makes a waiting message due now. */
function SendNow({ of: message, who, set }: { of: Message; who: Session; set: (message: Message) => void }) {
  const said = useSignal("");
  const { sending, problem, send } = useOrder();
  const hasten = async (event: Event): Promise<void> => {
    event.preventDefault();
    said.value = "";
    const after = await send(async () => {
      const answer = await post<Message>(`/v1/outbox/${message.id}/retry`);
      if (answer.id !== message.id || !Array.isArray(answer.history)) throw new ApiError(inDoubt);
      return answer;
    });
    if (after === null) return;
    said.value = "It is due now.";
    set(after);
  };
  return (
    <form class="decide" aria-label="Send it now" onSubmit={(event) => void hasten(event)}>
      <p class="causes">
        It is due {message.due_at === null ? "later" : <Moment at={message.due_at} />}. This makes it due now, and
        changes nothing else: a relay that has its destination sends it, behind those of the same work that were written
        before.
      </p>
      <OperatorName who={who} />
      {problem.value === null ? null : <Trouble problem={problem.value} />}
      <p role="status" class="said">
        {said.value}
      </p>
      <p class="buttons">
        <button type="submit" class="confirm" disabled={sending.value}>
          {sending.value ? "Sending…" : "Send it now"}
        </button>
      </p>
    </form>
  );
}

function Actions({
  of: message,
  who,
  came,
  set,
  again,
}: {
  of: Message;
  who: Session;
  came: Signal<Came | null>;
  set: (message: Message) => void;
  again: () => void;
}) {
  if (message.state === "delivered" || message.state === "discarded")
    return <Nothing>{messageStates[message.state]} You need do nothing.</Nothing>;
  if (message.in_flight) return <Nothing>It is being sent now: wait for the result.</Nothing>;
  if (who.role !== "operator")
    return <Nothing>Deciding needs the role operator; you have the role {who.role}.</Nothing>;
  return message.state === "waiting" ? (
    <SendNow of={message} who={who} set={set} />
  ) : (
    <Orders which={{ id: message.id }} who={who} came={came} after={again} />
  );
}

function Facts({ of: message }: { of: Message }) {
  return (
    <dl class="facts">
      <dt>destination</dt>
      <dd>{message.destination}</dd>
      <dt>type</dt>
      <dd>{message.type}</dd>
      {message.aggregate_id === "" ? null : (
        <>
          <dt>about</dt>
          <dd>
            {message.aggregate_type} {message.aggregate_id}
          </dd>
        </>
      )}
      <dt>record</dt>
      <dd>
        <Ref of={message.operation_ref} />
      </dd>
      {message.due_at === null ? null : (
        <>
          <dt>due</dt>
          <dd>
            <Moment at={message.due_at} />
          </dd>
        </>
      )}
      <dt>attempts</dt>
      <dd>{count(message.attempts)}</dd>
      {message.last_error === "" ? null : (
        <>
          <dt>last error</dt>
          <dd>{message.last_error}</dd>
        </>
      )}
      {message.reference === "" ? null : (
        <>
          <dt>receiver's reference</dt>
          <dd>{message.reference}</dd>
        </>
      )}
      {message.content_type === "" ? null : (
        <>
          <dt>content type</dt>
          <dd>{message.content_type}</dd>
        </>
      )}
      <dt>message</dt>
      <dd>{message.id}</dd>
    </dl>
  );
}

/** What happened to it, the oldest first. */
function History({ of: message }: { of: Message }) {
  return (
    <ol class="timeline">
      <li>
        <Moment at={message.created_at} /> <span>Written, in the transaction of its record's work</span>
      </li>
      {message.history.map((step) => (
        <li key={`${step.at} ${step.how} ${step.attempt ?? ""}`}>
          <Moment at={step.at} />{" "}
          <span>
            {step.attempt === undefined ? "" : `Attempt ${step.attempt}: `}
            {histories[step.how] ?? step.how.replaceAll("_", " ")}
          </span>
          {step.why === undefined || step.why === "" ? null : <span class="note">{step.why}</span>}
        </li>
      ))}
    </ol>
  );
}

function One({ id }: { id: string }) {
  const who = session.value as Session;
  const came = useSignal<Came | null>(null);
  const { loaded, set, again } = useLive(() => get<Message>(`/v1/outbox/${encodeURIComponent(id)}`), 3_000, [id]);
  const { value: message, problem } = loaded.value;
  if (message === null) {
    if (problem === null) return <p class="loading">Reading the message…</p>;
    return problem.status === 404 ? (
      <Nothing>
        {problem.detail} <a href={address(["messages"])}>Show all messages</a>
      </Nothing>
    ) : (
      <Trouble problem={problem} />
    );
  }
  return (
    <>
      {problem === null ? null : <Trouble problem={problem} />}
      <p class="state-line">
        <StateOf of={message} />: {messageStates[message.state]}
        {message.may_have_arrived ? (
          <b class="contested">
            {" "}
            It may have arrived: an attempt ended without an answer. If it is sent again and its destination does not
            recognise a repeat, it arrives twice.
          </b>
        ) : null}
      </p>
      <Facts of={message} />
      <Section title="What you can do">
        <CameOf of={came} />
        <Actions of={message} who={who} came={came} set={set} again={again} />
      </Section>
      <Section title="What happened">
        <History of={message} />
      </Section>
      <Section title="Content">
        {message.payload === null ? (
          <p class="note">The content needs the role support.</p>
        ) : message.payload === "" ? (
          <Nothing>It is empty.</Nothing>
        ) : (
          <pre tabIndex={0}>{message.payload}</pre>
        )}
      </Section>
    </>
  );
}

/** The outbox, and the messages that nobody sends any more. */
export function Messages() {
  const id = place.value.path[1];
  return id === undefined ? <List /> : <One key={id} id={id} />;
}

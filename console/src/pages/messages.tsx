import { type Signal, useSignal } from "@preact/signals";

import { ApiError, get, inDoubt, post, query, session } from "../api/client";
import { type Message, type MessageState, type MessageSummary, type MessagesPage, messageStates } from "../api/messages";
import type { Session, Status } from "../api/types";
import { type Came, CameOf, DeadLettersOrder, type Which } from "../parts/dead_letters";
import { OperatorName, Text, useOrder } from "../parts/fields";
import { Moment, Nothing, Ref, Section, Trouble } from "../parts/show";
import { Table } from "../parts/table";
import { count, span } from "../parts/words";
import { address, place, setFilters } from "../state/place";
import { useLive } from "../state/live";

const states = Object.keys(messageStates) as MessageState[];
const signs: Record<MessageState, string> = { waiting: "…", delivered: "✓", dead: "✗", discarded: "–" };

function StateOf({ of: one }: { of: MessageSummary }) {
  return <span class={`state ${one.state}`} title={messageStates[one.state]}><span aria-hidden="true">{signs[one.state]}</span> {one.in_flight ? "being sent" : one.state}</span>;
}

/** How far each destination is behind. */
function Lag() {
  const { loaded } = useLive(() => get<Status>("/v1/status?max_age=28"), 10_000, []);
  const { value, problem } = loaded.value;
  if (value === null) return problem === null ? <p class="loading">Asking the gateway…</p> : <Trouble problem={problem} />;
  if (value.outbox === null) {
    return <Nothing>{value.store.up ? "This store has no outbox: SQLite, PostgreSQL and MariaDB have one." : "The store does not answer."}</Nothing>;
  }
  if (value.outbox.length === 0) return <Nothing>No destination is configured, and no message waits. Services that use the library or the SQL face write messages.</Nothing>;
  return (
    <Table name="Destinations" columns={["destination", "waiting", "the oldest waits", "dead letters"]} rows={value.outbox.map((one) => ({
      key: one.destination,
      cells: [
        one.destination,
        count(one.waiting),
        one.waiting === 0 ? "nothing waits" : span(one.oldest_seconds),
        one.dead === 0 ? "none" : <a href={address(["messages"], { state: "dead", destination: one.destination })}><b class="contested">✗ {count(one.dead)}</b></a>,
      ],
    }))} />
  );
}

/** The orders about all dead letters that the filters name. */
function Orders({ which, who, came, after }: { which: Which; who: Session; came: Signal<Came | null>; after: () => void }) {
  const open = useSignal<"redrive" | "discard" | null>(null);
  if (who.role !== "operator") return <Nothing>Sending again and discarding need the role operator; you have the role {who.role}.</Nothing>;
  const what = open.value;
  if (what !== null) {
    return <DeadLettersOrder key={what} what={what} which={which} who={who} came={came} after={after} leave={() => {
      open.value = null;
    }} />;
  }
  return (
    <div class="buttons">
      <button type="button" onClick={() => {
        came.value = null;
        open.value = "redrive";
      }}>
        Send again…
      </button>
      <button type="button" onClick={() => {
        came.value = null;
        open.value = "discard";
      }}>
        Discard for good…
      </button>
    </div>
  );
}

function Rows({ of: messages }: { of: MessageSummary[] }) {
  return (
    <Table columns={["message", "state", "destination", "type", "age", "attempts", "last error"]} rows={messages.map((one) => ({
      key: one.id,
      cells: [
        <a class="ref" href={address(["messages", one.id])}>{one.id.slice(0, 8)}</a>,
        <><StateOf of={one} />{one.may_have_arrived ? " may have arrived" : ""}</>,
        one.destination,
        one.type,
        <Moment at={one.created_at} />,
        one.attempts,
        one.last_error,
      ],
    }))} />
  );
}

function List() {
  const who = session.value as Session;
  const filters = place.value.filters;
  const state = (filters.get("state") ?? "waiting") as MessageState;
  const destination = filters.get("destination") ?? "";
  const cursor = filters.get("cursor") ?? "";
  const wanted = useSignal(destination);
  const came = useSignal<Came | null>(null);
  const parameters = query({ state, destination, cursor, limit: 50 });
  const { loaded, again } = useLive(() => get<MessagesPage>(`/v1/outbox${parameters}`), 5_000, [parameters]);
  const { value, problem } = loaded.value;
  return (
    <>
      <Section title="Lag"><Lag /></Section>
      <Section title="Messages">
        <nav class="tabs" aria-label="States of messages">
          {states.map((one) => (
            <a key={one} href={address(["messages"], { state: one, destination })} aria-current={state === one ? "page" : undefined}>
              <span aria-hidden="true">{signs[one]}</span> {one === "dead" ? "dead letters" : one}
            </a>
          ))}
        </nav>
        <form role="search" class="search" onSubmit={(event) => {
          event.preventDefault();
          setFilters({ destination: wanted.value.trim(), cursor: "" });
        }}>
          <Text label="Destination" name="destination" value={wanted} />
          <button type="submit">Show</button>
        </form>
        <p class="note">{messageStates[state]}</p>
        <CameOf of={came} />
        {state === "dead" ? <Orders key={destination} which={destination === "" ? {} : { destination }} who={who} came={came} after={again} /> : null}
        {problem === null || problem.code === "not_found" ? null : <Trouble problem={problem} />}
        {problem?.code === "not_found" ? <Nothing>{problem.detail}</Nothing> : value === null ? (
          problem === null ? <p class="loading">Reading messages…</p> : null
        ) : value.messages.length === 0 ? (
          <Nothing>{state === "dead" ? "There is no dead letter. That is normal." : "No message is in this state."}</Nothing>
        ) : (
          <Rows of={value.messages} />
        )}
        {value?.next ? <button type="button" onClick={() => setFilters({ cursor: value.next ?? "" })}>Next page</button> : null}
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
    const after = await send(async () => {
      const answer = await post<Message>(`/v1/outbox/${message.id}/retry`);
      if (answer.id !== message.id || !Array.isArray(answer.history)) throw new ApiError(inDoubt);
      return answer;
    });
    if (after === null) return;
    said.value = "It is due now: the relay sends it next.";
    set(after);
  };
  return (
    <form class="decide" aria-label="Send it now" onSubmit={(event) => void hasten(event)}>
      <p>The relay sends it at {message.due_at === null ? "its time" : <Moment at={message.due_at} />}. Sending it now changes nothing else.</p>
      <OperatorName who={who} />
      {problem.value === null ? null : <Trouble problem={problem.value} />}
      <p role="status" class="said">{said.value}</p>
      <p class="buttons"><button type="submit" class="confirm" disabled={sending.value}>{sending.value ? "Sending…" : "Send it now"}</button></p>
    </form>
  );
}

function Actions({ of: message, who, came, set, again }: { of: Message; who: Session; came: Signal<Came | null>; set: (message: Message) => void; again: () => void }) {
  if (message.state === "delivered" || message.state === "discarded") return <Nothing>{messageStates[message.state]} You need do nothing.</Nothing>;
  if (message.in_flight) return <Nothing>It is being sent now: wait for the result.</Nothing>;
  if (who.role !== "operator") return <Nothing>Deciding needs the role operator; you have the role {who.role}.</Nothing>;
  return message.state === "waiting" ? <SendNow of={message} who={who} set={set} /> : <Orders which={{ id: message.id }} who={who} came={came} after={again} />;
}

function One({ id }: { id: string }) {
  const who = session.value as Session;
  const came = useSignal<Came | null>(null);
  const { loaded, set, again } = useLive(() => get<Message>(`/v1/outbox/${encodeURIComponent(id)}`), 3_000, [id]);
  const { value: message, problem } = loaded.value;
  if (message === null) {
    if (problem === null) return <p class="loading">Reading the message…</p>;
    return problem.status === 404 ? <Nothing>{problem.detail} <a href={address(["messages"])}>Show all messages</a></Nothing> : <Trouble problem={problem} />;
  }
  return (
    <>
      {problem === null ? null : <Trouble problem={problem} />}
      <p class="state-line">
        <StateOf of={message} /> {messageStates[message.state]}
        {message.may_have_arrived ? <b class="contested"> It may have arrived: an attempt ended without a result.</b> : null}
      </p>
      <dl class="facts">
        <dt>destination</dt><dd>{message.destination}</dd>
        <dt>type</dt><dd>{message.type}</dd>
        <dt>about</dt><dd>{message.aggregate_type} {message.aggregate_id}</dd>
        <dt>record</dt><dd><Ref of={message.operation_ref} /></dd>
        <dt>attempts</dt><dd>{message.attempts}</dd>
        {message.last_error === "" ? null : <><dt>last error</dt><dd>{message.last_error}</dd></>}
        {message.reference === "" ? null : <><dt>receiver's reference</dt><dd>{message.reference}</dd></>}
        <dt>message</dt><dd>{message.id}</dd>
      </dl>
      <Section title="What you can do">
        <CameOf of={came} />
        <Actions of={message} who={who} came={came} set={set} again={again} />
      </Section>
      <Section title="What happened">
        <ol class="timeline">
          <li><Moment at={message.created_at} /> <span>Written, in the transaction of its record's work</span></li>
          {message.history.map((step) => (
            <li key={`${step.at} ${step.how} ${step.attempt ?? ""}`}>
              <Moment at={step.at} /> <span>{step.attempt === undefined ? "" : `Attempt ${step.attempt}: `}{step.how.replaceAll("_", " ")}</span>
              {step.why === undefined ? null : <span class="note">{step.why}</span>}
            </li>
          ))}
        </ol>
      </Section>
      <Section title="Content">
        {message.payload === null ? <p class="note">The content needs the role support.</p> : message.payload === "" ? <Nothing>It is empty.</Nothing> : <pre tabIndex={0}>{message.payload}</pre>}
      </Section>
    </>
  );
}

/** The outbox, and the messages that nobody sends any more. */
export function Messages() {
  const id = place.value.path[1];
  return id === undefined ? <List /> : <One key={id} id={id} />;
}

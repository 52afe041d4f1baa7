import { useSignal } from "@preact/signals";

import { ApiError, get, inDoubt, operatorName, post, query, session } from "../api/client";
import { type ApprovalSummary, type ApprovalsPage, type WaitingOrder, approvalStates } from "../api/approvals";
import type { Session } from "../api/types";
import { OperatorName, Text, useOrder } from "../parts/fields";
import { Moment, Nothing, Ref, Section, StateTag, Trouble } from "../parts/show";
import { Table } from "../parts/table";
import { address, place, setFilters } from "../state/place";
import { useLive } from "../state/live";

const kinds: Record<ApprovalSummary["kind"], string> = {
  resolve: "settle a record by evidence",
  release: "drop a stored error, so that a retry runs again",
  jobs: "decide about many records at once",
  discard: "discard a dead letter for good",
};

const who = (one: ApprovalSummary): string => `${one.given} of ${one.needs}: ${one.given_by.join(", ")}`;

function List() {
  const cursor = place.value.filters.get("cursor") ?? "";
  const parameters = query({ cursor, limit: 20 });
  const { loaded } = useLive(() => get<ApprovalsPage>(`/v1/approvals${parameters}`), 5_000, [parameters]);
  const { value, problem } = loaded.value;
  return (
    <>
      {problem === null ? null : <Trouble problem={problem} />}
      {value === null ? (
        problem === null ? <p class="loading">Reading the orders…</p> : null
      ) : value.approvals.length === 0 ? (
        <Nothing>No order waited for another person in the last 30 days. Orders wait only where the settings under approvals say so.</Nothing>
      ) : (
        <Table columns={["order", "what", "state", "approved by", "asked", "ends", "reason"]} rows={value.approvals.map((one) => ({
          key: one.approval,
          cells: [
            <a class="ref" href={address(["approvals", one.approval])}>{one.approval.slice(0, 8)}</a>,
            kinds[one.kind],
            one.state,
            who(one),
            <Moment at={one.asked_at} />,
            <Moment at={one.ends_at} />,
            one.reason,
          ],
        }))} />
      )}
      {value?.next ? <button type="button" onClick={() => setFilters({ cursor: value.next ?? "" })}>Older orders</button> : null}
    </>
  );
}

/** The answer of an order as text, as it would be stored; null: the order has none. */
function answerIn(order: Record<string, unknown>): string | null {
  const response = order["response"] as { status?: number; headers?: [string, string][]; body_b64?: string } | undefined;
  if (response === undefined) return null;
  const fields = (response.headers ?? []).map(([name, value]) => `${name}: ${value}\n`).join("");
  let body = "";
  try {
    body = new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(atob(response.body_b64 ?? ""), (one) => one.charCodeAt(0)));
  } catch {
    body = "(the body is no text)";
  }
  return `${response.status ?? ""}\n${fields}\n${body}`;
}

function OrderText({ of: order }: { of: Record<string, unknown> }) {
  const answer = answerIn(order);
  const shown = Object.entries(order).filter(([name]) => name !== "response");
  return (
    <>
      <dl class="facts">
        {shown.map(([name, value]) => (
          <>
            <dt key={name}>{name.replaceAll("_", " ")}</dt>
            <dd>{typeof value === "string" ? value : JSON.stringify(value)}</dd>
          </>
        ))}
      </dl>
      {answer === null ? null : (
        <>
          <p class="note">The answer that retries get:</p>
          <pre tabIndex={0}>{answer}</pre>
        </>
      )}
    </>
  );
}

function Decide({ of: order, set }: { of: WaitingOrder; set: (order: WaitingOrder) => void }) {
  const login = session.value as Session;
  const reason = useSignal("");
  const said = useSignal("");
  const { sending, problem, send } = useOrder();
  const decide = async (what: "approve" | "reject"): Promise<void> => {
    const after = await send(async () => {
      const answer = await post<WaitingOrder>(`/v1/approvals/${order.approval}/${what}`, { reason: reason.value });
      if (answer.approval !== order.approval || typeof answer.state !== "string") throw new ApiError(inDoubt);
      return answer;
    });
    if (after === null) return;
    said.value = what === "reject" ? "Rejected: nothing is done." : approvalStates[after.state];
    set(after);
  };
  const isOpen = order.state === "waiting" || order.state === "deciding";
  const mine = order.given_by.includes(`operator:${login.name ?? operatorName.value}`) || order.given_by.includes(login.name ?? operatorName.value);
  return (
    <>
      <p role="status" class="said">{said.value}</p>
      {!isOpen ? <Nothing>{approvalStates[order.state]}</Nothing> : login.role !== "operator" ? (
        <Nothing>Approving needs the role operator; you have the role {login.role}.</Nothing>
      ) : (
        <form class="decide" aria-label="Approve or reject" onSubmit={(event) => {
          event.preventDefault();
          void decide("approve");
        }}>
          <p class="causes">With the last approval the gateway carries the order out at once. It refuses it if what was seen then has changed.</p>
          {mine && order.state === "waiting" ? <p class="note">You have approved it already: a name counts once, so another person must. You can reject it.</p> : null}
          <Text label="Reason" name="reason" required value={reason} />
          <OperatorName who={login} />
          {problem.value === null ? null : <Trouble problem={problem.value} />}
          <p class="buttons">
            <button type="submit" class="confirm" disabled={sending.value}>{sending.value ? "Sending…" : "Approve"}</button>
            <button type="button" disabled={sending.value || reason.value === ""} onClick={() => void decide("reject")}>Reject</button>
          </p>
        </form>
      )}
    </>
  );
}

function One({ id }: { id: string }) {
  const { loaded, set } = useLive(() => get<WaitingOrder>(`/v1/approvals/${encodeURIComponent(id)}`), 5_000, [id]);
  const { value: order, problem } = loaded.value;
  if (order === null) {
    if (problem === null) return <p class="loading">Reading the order…</p>;
    return problem.status === 404 ? <Nothing>{problem.detail} <a href={address(["approvals"])}>Show all orders</a></Nothing> : <Trouble problem={problem} />;
  }
  const now = order.record ?? null;
  return (
    <>
      {problem === null ? null : <Trouble problem={problem} />}
      <p class="state-line"><b>{order.state}</b>: {approvalStates[order.state]}</p>
      <dl class="facts">
        <dt>what</dt><dd>{kinds[order.kind]}</dd>
        <dt>approved by</dt><dd>{who(order)}</dd>
        <dt>asked</dt><dd><Moment at={order.asked_at} /></dd>
        <dt>ends</dt><dd><Moment at={order.ends_at} /></dd>
        <dt>reason</dt><dd>{order.reason}</dd>
        {order.ref === null ? null : <><dt>about</dt><dd>{order.kind === "discard" ? <a class="ref" href={address(["messages", order.ref])}>{order.ref.slice(0, 8)}</a> : <Ref of={order.ref} />}</dd></>}
        <dt>as it was then</dt><dd>{order.seen}</dd>
        {now === null ? null : <><dt>as it is now</dt><dd><StateTag state={now.state} /> attempt {now.fence}{now.contested ? ", contested" : ""}</dd></>}
        {order.ended_by === null ? null : <><dt>ended by</dt><dd>{order.ended_by}</dd></>}
        {order.outcome === null ? null : <><dt>outcome</dt><dd>{order.outcome}</dd></>}
      </dl>
      <Section title="The order">{order.order === undefined ? <Nothing>It is no longer kept.</Nothing> : <OrderText of={order.order} />}</Section>
      <Section title="What you can do"><Decide of={order} set={set} /></Section>
    </>
  );
}

/** Orders that wait for another person. */
export function Approvals() {
  const login = session.value as Session;
  const id = place.value.path[1];
  if (login.role === "viewer") return <Nothing>Approvals need the role support; you have the role viewer.</Nothing>;
  return id === undefined ? <List /> : <One key={id} id={id} />;
}

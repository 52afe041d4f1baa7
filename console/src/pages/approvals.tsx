import { useSignal } from "@preact/signals";

import { ApiError, get, inDoubt, post, query, session } from "../api/client";
import {
  type ApprovalState,
  type ApprovalSummary,
  type ApprovalsPage,
  type WaitingOrder,
  approvalStates,
} from "../api/approvals";
import type { Session } from "../api/types";
import { OperatorName, Text, useOrder } from "../parts/fields";
import { SeenAndNow, TheOrder, causesOf, kindWords, whatOf } from "../parts/order_words";
import { Moment, Nothing, Ref, Section, Trouble } from "../parts/show";
import { Table } from "../parts/table";
import { address, place, setFilters } from "../state/place";
import { useLive } from "../state/live";

const signs: Record<ApprovalState, string> = {
  waiting: "…",
  deciding: "▸",
  decided: "✓",
  refused: "✗",
  rejected: "–",
  expired: "–",
  damaged: "✗",
};
const stateOf = (one: ApprovalSummary) => (
  <span class="state">
    <span aria-hidden="true">{signs[one.state]}</span> {one.state}
  </span>
);
const given = (one: ApprovalSummary): string => `${one.given} of ${one.needs}: ${one.given_by.join(", ")}`;
const isOpen = (one: ApprovalSummary): boolean => one.state === "waiting" || one.state === "deciding";

function List() {
  const cursor = place.value.filters.get("cursor") ?? "";
  const parameters = query({ cursor, limit: 20 });
  const { loaded } = useLive(() => get<ApprovalsPage>(`/v1/approvals${parameters}`), 5_000, [parameters]);
  const { value, problem } = loaded.value;
  return (
    <>
      {problem === null ? null : <Trouble problem={problem} />}
      {value === null ? (
        problem === null ? (
          <p class="loading">Reading the orders…</p>
        ) : null
      ) : value.approvals.length === 0 ? (
        <Nothing>
          No order waited for another person in the last 30 days. That is normal: orders wait only where the settings
          under approvals ask for more than one person.
        </Nothing>
      ) : (
        <Table
          columns={["order", "what", "state", "approved by", "asked", "ends", "reason"]}
          rows={value.approvals.map((one) => ({
            key: one.approval,
            cells: [
              <a class="ref" href={address(["approvals", one.approval])}>
                {one.approval.slice(0, 12)}
              </a>,
              kindWords[one.kind],
              stateOf(one),
              given(one),
              <Moment at={one.asked_at} />,
              isOpen(one) ? <Moment at={one.ends_at} /> : "has ended",
              one.reason,
            ],
          }))}
        />
      )}
      {value?.next ? (
        <button type="button" onClick={() => setFilters({ cursor: value.next ?? "" })}>
          Older orders
        </button>
      ) : null}
    </>
  );
}

/** What an approval causes now. */
function approvalCauses(order: WaitingOrder): string {
  if (order.state === "deciding")
    return "All approvals are there. Approving once more finishes the order; what was done already is not done again.";
  const missing = order.needs - order.given - 1;
  if (missing > 0) {
    const people = `${missing} more ${missing === 1 ? "person" : "people"}`;
    return `Nothing is done yet after your approval: ${people} must approve.`;
  }
  return (
    "Your approval is the last one: the gateway carries out the order at once. It refuses it if what was seen " +
    "then has changed."
  );
}

/** Who may approve, and who may only reject; the text says why. */
function rights(order: WaitingOrder, login: Session): { approves: boolean; rejects: boolean; why: string } {
  const rejects = order.state === "waiting";
  if (login.name === null) {
    return {
      approves: false,
      rejects,
      why: "Approving needs the login of a person, and yours is the gateway's own token: log in with a token of yours.",
    };
  }
  if (order.state === "waiting" && order.given_by.includes(login.name)) {
    return {
      approves: false,
      rejects,
      why: "You have approved it already, and a name counts once: another person must approve it. You can reject it.",
    };
  }
  return { approves: true, rejects, why: "" };
}

interface DecideProps {
  of: WaitingOrder;
  login: Session;
  set: (order: WaitingOrder) => void;
  again: () => void;
}

function Decide({ of: order, login, set, again }: DecideProps) {
  const reason = useSignal("");
  const said = useSignal("");
  const { sending, problem, send } = useOrder();
  const decide = async (what: "approve" | "reject"): Promise<void> => {
    said.value = "";
    const after = await send(async () => {
      const answer = await post<WaitingOrder>(`/v1/approvals/${order.approval}/${what}`, { reason: reason.value });
      if (answer.approval !== order.approval || !(answer.state in approvalStates)) throw new ApiError(inDoubt);
      return answer;
    });
    if (after === null) return again();
    reason.value = "";
    said.value = what === "reject" ? "Rejected: nothing is done." : `Approved. ${approvalStates[after.state]}`;
    set(after);
  };
  const { approves, rejects, why } = rights(order, login);
  return (
    <>
      <p role="status" class="said">
        {said.value}
      </p>
      {problem.value === null ? null : <Trouble problem={problem.value} />}
      {!isOpen(order) ? (
        <Nothing>
          {order.state === "refused" || order.state === "expired"
            ? "It is over. If it is still right, order it anew."
            : "It is over: you need do nothing."}
        </Nothing>
      ) : login.role !== "operator" ? (
        <Nothing>Approving and rejecting need the role operator; you have the role {login.role}.</Nothing>
      ) : (
        <form
          class="decide"
          aria-label="Approve or reject"
          onSubmit={(event) => {
            // Enter in the reason must not decide: it may be meant as that of a rejection.
            event.preventDefault();
          }}
        >
          {why === "" ? <p class="causes">{approvalCauses(order)}</p> : <p class="note">{why}</p>}
          {rejects ? <p>After a rejection nothing is done, and the order is over.</p> : null}
          <Text label="Reason" name="reason" required value={reason} />
          <OperatorName who={login} />
          <p class="buttons">
            <button
              type="button"
              class="confirm"
              disabled={sending.value || !approves || reason.value.trim() === ""}
              onClick={() => void decide("approve")}
            >
              {sending.value ? "Sending…" : "Approve"}
            </button>
            {rejects ? (
              <button
                type="button"
                disabled={sending.value || reason.value.trim() === ""}
                onClick={() => void decide("reject")}
              >
                Reject
              </button>
            ) : null}
          </p>
        </form>
      )}
    </>
  );
}

function About({ of: order }: { of: WaitingOrder }) {
  if (order.ref === null) return null;
  return (
    <>
      <dt>about</dt>
      <dd>
        {order.kind === "discard" ? (
          <a class="ref" href={address(["messages", order.ref])}>
            message {order.ref.slice(0, 8)}
          </a>
        ) : (
          <Ref of={order.ref} />
        )}
      </dd>
    </>
  );
}

function Facts({ of: order }: { of: WaitingOrder }) {
  return (
    <dl class="facts">
      <dt>what</dt>
      <dd>{whatOf(order)}</dd>
      <dt>approved by</dt>
      <dd>{given(order)}</dd>
      <dt>asked</dt>
      <dd>
        <Moment at={order.asked_at} />
      </dd>
      {isOpen(order) ? (
        <>
          <dt>ends</dt>
          <dd>
            <Moment at={order.ends_at} />
          </dd>
        </>
      ) : null}
      <dt>reason</dt>
      <dd>{order.reason}</dd>
      <About of={order} />
      <SeenAndNow of={order} />
      {order.ended_by === null ? null : (
        <>
          <dt>ended by</dt>
          <dd>{order.ended_by}</dd>
        </>
      )}
      {order.outcome === null ? null : (
        <>
          <dt>outcome</dt>
          <dd>{order.outcome}</dd>
        </>
      )}
    </dl>
  );
}

function One({ id }: { id: string }) {
  const { loaded, set, again } = useLive(() => get<WaitingOrder>(`/v1/approvals/${encodeURIComponent(id)}`), 5_000, [
    id,
  ]);
  const { value: order, problem } = loaded.value;
  const back = (
    <p>
      <a href={address(["approvals"])}>All orders</a>
    </p>
  );
  if (order === null) {
    return (
      <>
        {back}
        {problem === null ? (
          <p class="loading">Reading the order…</p>
        ) : problem.status === 404 ? (
          <Nothing>
            No order has the id {id}. The id may be wrong, or the gateway has dropped the order: it keeps each for 30
            days.
          </Nothing>
        ) : (
          <Trouble problem={problem} />
        )}
      </>
    );
  }
  return (
    <>
      {back}
      {problem === null ? null : <Trouble problem={problem} />}
      <p class="state-line">
        {stateOf(order)}: {approvalStates[order.state]}
      </p>
      <Facts of={order} />
      <Section title="The order">
        {order.order === undefined ? null : (
          <p>
            <b>{causesOf(order)}</b>
          </p>
        )}
        {order.order === undefined ? <Nothing>It is no longer kept.</Nothing> : <TheOrder of={order.order} />}
      </Section>
      <Section title="What you can do">
        <Decide of={order} login={session.value as Session} set={set} again={again} />
      </Section>
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

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";

import { ApiError, operatorName, post } from "../api/client";
import type { Approval, Key, Problem, Session } from "../api/types";
import { Nothing, Trouble } from "./show";

type Decision = "completed" | "failed_retryable" | "release";

interface Choice {
  decision: Decision;
  title: string;
  /** What it causes, in full: it cannot be taken back. */
  causes: string;
  confirm: string;
}

const choices: Record<Decision, Choice> = {
  completed: {
    decision: "completed",
    title: "It was done",
    causes:
      "The record completes with the answer that you give here. Each retry gets it, and the work never runs again under this key.",
    confirm: "Complete it",
  },
  failed_retryable: {
    decision: "failed_retryable",
    title: "It was not done",
    causes:
      "The work can run again: at the client's next retry, or by itself where the request is stored. If it was done after all, it is done twice.",
    confirm: "Let it run again",
  },
  release: {
    decision: "release",
    title: "Drop the stored error",
    causes: "The stored answer goes, and the next retry runs the work again. Only do this where the error proves that nothing was done.",
    confirm: "Drop the answer",
  },
};

/** What may be decided about a record, and why nothing else. */
export function allowed(key: Key): { decisions: Decision[]; why: string } {
  const byEvidence = key.evidence.some((one) => one.applied && one.after === "completed");
  switch (key.state) {
    case "unknown":
      return key.contested
        ? { decisions: ["completed"], why: "Evidence says that it ran, so it cannot be released." }
        : { decisions: ["completed", "failed_retryable"], why: "" };
    case "failed_retryable":
      return { decisions: ["completed"], why: "A retry may run already, so there is nothing to release." };
    case "pending":
      return key.fence > 0
        ? { decisions: ["completed"], why: "It runs by itself, so there is nothing to release." }
        : { decisions: [], why: "It waits for its first run, which nothing needs to decide." };
    case "in_progress":
      return { decisions: [], why: "An attempt runs. If it ends without an answer, the outcome is unknown, and then you decide here." };
    case "completed":
      if ((key.response?.status ?? 0) < 500) return { decisions: [], why: "It is done. Only a stored 5xx can be dropped." };
      return byEvidence || key.contested
        ? { decisions: [], why: "Evidence says that it ran, so its answer stays." }
        : { decisions: ["release"], why: "" };
    case "expired":
      return { decisions: [], why: "Its retention is over: nothing runs under this key, and nothing is to decide." };
  }
}

function Row(props: { label: string; name: string; note?: string; children: ComponentChildren }) {
  return (
    <p class="row">
      <label for={props.name}>{props.label}</label>
      {props.children}
      {props.note === undefined ? null : <span class="note">{props.note}</span>}
    </p>
  );
}

function base64Of(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

function Form(props: { choice: Choice; of: Key; who: Session; done: (said: string) => void; leave: () => void }) {
  const { choice, of: key } = props;
  const evidence = useSignal("");
  const reason = useSignal("");
  const status = useSignal("201");
  const body = useSignal("");
  const problem = useSignal<Problem | null>(null);
  const sending = useSignal(false);
  // The attempt that the operator looked at; a newer one is refused, and not decided by accident.
  const fence = useSignal(key.fence);
  const send = async (event: Event): Promise<void> => {
    event.preventDefault();
    sending.value = true;
    const order: Record<string, unknown> = { fence: fence.value, reason: reason.value };
    if (choice.decision !== "release") {
      order["as"] = choice.decision;
      order["evidence"] = evidence.value;
    }
    if (choice.decision === "completed") {
      order["response"] = {
        status: Number(status.value),
        headers: body.value === "" ? [] : [["Content-Type", "application/json"]],
        body_b64: base64Of(body.value),
      };
    }
    try {
      const path = `/v1/keys/${key.ref}/${choice.decision === "release" ? "release" : "resolve"}`;
      const answer = await post<Key | Approval>(path, order);
      props.done(
        "approval" in answer
          ? `Nothing is done yet: the order waits for the approval of another person (idem approvals show ${answer.approval}).`
          : "Done. The record below is as the store has it now.",
      );
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      problem.value = error.problem;
    } finally {
      sending.value = false;
    }
  };
  return (
    <form class="decide" aria-label={choice.title} onSubmit={(event) => void send(event)}>
      <p class="causes">{choice.causes}</p>
      {choice.decision === "release" ? null : (
        <Row label="What you saw, and where" name="evidence" note="For example the charge's id in the provider's books. It stays in the evidence log.">
          <textarea id="evidence" required rows={2} value={evidence.value} onInput={(event) => {
            evidence.value = event.currentTarget.value;
          }} />
        </Row>
      )}
      <Row label="Reason" name="reason">
        <input id="reason" required value={reason.value} onInput={(event) => {
          reason.value = event.currentTarget.value;
        }} />
      </Row>
      {choice.decision !== "completed" ? null : (
        <>
          <Row label="Status that retries get" name="status">
            <input id="status" type="number" min={200} max={599} required value={status.value} onInput={(event) => {
              status.value = event.currentTarget.value;
            }} />
          </Row>
          <Row label="Body that retries get (JSON)" name="body">
            <textarea id="body" rows={4} value={body.value} onInput={(event) => {
              body.value = event.currentTarget.value;
            }} />
          </Row>
        </>
      )}
      {props.who.name !== null ? null : (
        <Row label="Your name" name="operator" note="This login proves a role and no name; the evidence log needs one.">
          <input id="operator" required pattern="[!-~]{1,64}" value={operatorName.value} onInput={(event) => {
            operatorName.value = event.currentTarget.value;
          }} />
        </Row>
      )}
      {problem.value === null ? null : <Trouble problem={problem.value} />}
      {fence.value === key.fence ? null : (
        <p class="trouble" role="alert">
          Attempt {key.fence} has begun since you opened this; you look at attempt {fence.value}. Close this and look again.
        </p>
      )}
      <p class="buttons">
        <button type="submit" class="confirm" disabled={sending.value}>{sending.value ? "Sending…" : choice.confirm}</button>
        <button type="button" onClick={props.leave}>Leave it as it is</button>
      </p>
    </form>
  );
}

/** The decisions that the record's state allows, each with what it causes, and why the others are missing. */
export function Choices(props: { of: Key; who: Session; after: () => void }) {
  const open = useSignal<Decision | null>(null);
  const said = useSignal("");
  const { decisions, why } = allowed(props.of);
  const shown = open.value !== null && decisions.includes(open.value) ? open.value : null;
  return (
    <>
      <p role="status" class="said">{said.value}</p>
      {decisions.length > 0 && props.who.role !== "operator" ? (
        <Nothing>Deciding needs the role operator; you have the role {props.who.role}.</Nothing>
      ) : shown !== null ? (
        <Form
          key={shown}
          choice={choices[shown]}
          of={props.of}
          who={props.who}
          done={(text) => {
            said.value = text;
            open.value = null;
            props.after();
          }}
          leave={() => {
            open.value = null;
          }}
        />
      ) : (
        <div class="buttons">
          {decisions.map((one) => (
            <button type="button" key={one} onClick={() => {
              said.value = "";
              open.value = one;
            }}>
              {choices[one].title}…
            </button>
          ))}
        </div>
      )}
      {why === "" ? null : <Nothing>{why}</Nothing>}
    </>
  );
}

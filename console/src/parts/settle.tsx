import { type Signal, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";

import { ApiError, operatorName, post, serverNow } from "../api/client";
import type { Approval, Key, Problem, Session } from "../api/types";
import { now } from "../state/live";
import { Nothing, Trouble } from "./show";
import { span } from "./words";

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
      "The record completes with the answer that you give here. Each retry gets it until its retention ends, and nothing runs under this key until the key is forgotten. This cannot be taken back.",
    confirm: "Complete it",
  },
  failed_retryable: {
    decision: "failed_retryable",
    title: "It was not done",
    causes:
      "The work can run again: at the client's next retry, or by itself where the request is stored. If it was done after all, it is done twice. It counts only if you look when the attempt can no longer run: after its lease and a grace.",
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
      return { decisions: [], why: "Its retention is over: the key is refused until it is forgotten, and nothing is to decide." };
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

/** When the operator looked, which an absence needs: a moment of the gateway's clock, and no guess. */
function Looked(props: { at: Signal<number | null>; from: number | null }) {
  const { at, from } = props;
  const wait = from === null ? 0 : Math.ceil((from - (now.value, serverNow())) / 1000);
  return (
    <p class="row">
      <span>When you looked</span>
      {wait > 0 ? (
        <span role="status">A look counts in {span(wait)}. Then look again.</span>
      ) : at.value === null ? (
        <button type="button" onClick={() => {
          at.value = serverNow();
        }}>
          I have just looked there
        </button>
      ) : (
        <span role="status">
          You looked at {new Date(at.value).toLocaleTimeString()}.{" "}
          <button type="button" onClick={() => {
            at.value = null;
          }}>
            Look again
          </button>
        </span>
      )}
    </p>
  );
}

interface Given {
  status: string;
  type: string;
  fields: string;
  body: string;
  bodyless: boolean;
}

/** The answer that retries get, or what is missing in it. */
export function answerOf(given: Given): { status: number; headers: [string, string][]; body: string } | string {
  const status = Number(given.status);
  if (!Number.isInteger(status) || status < 200 || status > 599) return "Write a status from 200 to 599.";
  const headers: [string, string][] = [];
  for (const line of given.fields.split("\n").map((one) => one.trim()).filter((one) => one !== "")) {
    const colon = line.indexOf(":");
    if (colon < 1) return `"${line}" is no field: write Name: value.`;
    headers.push([line.slice(0, colon).trim(), line.slice(colon + 1).trim()]);
  }
  if (given.bodyless) return given.body === "" ? { status, headers, body: "" } : "Remove the body, or the mark that there is none.";
  if (given.body === "") return "Write the body that your API would have sent, or mark that there is none.";
  if (given.type.includes("json")) {
    try {
      JSON.parse(given.body);
    } catch (error) {
      return `The body is no JSON: ${error instanceof Error ? error.message : String(error)}`;
    }
  }
  return { status, headers: given.type === "" ? headers : [["Content-Type", given.type], ...headers], body: given.body };
}

function AnswerFields({ of: given }: { of: Signal<Given> }) {
  const set = (change: Partial<Given>): void => {
    given.value = { ...given.value, ...change };
  };
  const answer = answerOf(given.value);
  return (
    <fieldset>
      <legend>The answer that retries get, as your API would have sent it</legend>
      <Row label="Status" name="status">
        <input id="status" inputMode="numeric" required value={given.value.status} onInput={(event) => set({ status: event.currentTarget.value })} />
      </Row>
      <Row label="Content-Type" name="type">
        <input id="type" value={given.value.type} onInput={(event) => set({ type: event.currentTarget.value })} />
      </Row>
      <Row label="Further fields, a line each" name="fields" note="For example Location: /v1/payments/17">
        <textarea id="fields" rows={2} value={given.value.fields} onInput={(event) => set({ fields: event.currentTarget.value })} />
      </Row>
      <Row label="Body" name="body">
        <textarea id="body" rows={4} value={given.value.body} onInput={(event) => set({ body: event.currentTarget.value })} />
      </Row>
      <p>
        <label>
          <input type="checkbox" checked={given.value.bodyless} onChange={(event) => set({ bodyless: event.currentTarget.checked })} /> This answer has no body
        </label>
      </p>
      <p class="note" role="status">{typeof answer === "string" ? answer : "Each retry gets exactly this:"}</p>
      {typeof answer === "string" ? null : (
        <pre tabIndex={0}>{`${answer.status}\n${answer.headers.map(([name, value]) => `${name}: ${value}\n`).join("")}\n${answer.body}`}</pre>
      )}
    </fieldset>
  );
}

function Form(props: { choice: Choice; of: Key; who: Session; done: (said: string) => void; leave: () => void }) {
  const { choice, of: key } = props;
  const evidence = useSignal("");
  const reason = useSignal("");
  const given = useSignal<Given>({ status: "", type: "application/json", fields: "", body: "", bodyless: false });
  const looked = useSignal<number | null>(null);
  const looksFrom = useSignal<number | null>(null);
  const problem = useSignal<Problem | null>(null);
  const sending = useSignal(false);
  // What the operator saw; what has changed since then is not decided by accident.
  const seen = useSignal({ fence: key.fence, state: key.state });
  const isOther = seen.value.fence !== key.fence || seen.value.state !== key.state;
  const answer = choice.decision === "completed" ? answerOf(given.value) : null;
  const isReady = !isOther && typeof answer !== "string" && (choice.decision !== "failed_retryable" || looked.value !== null);
  const send = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (!isReady) return;
    sending.value = true;
    const order: Record<string, unknown> = { fence: seen.value.fence, reason: reason.value };
    if (choice.decision !== "release") {
      order["as"] = choice.decision;
      order["evidence"] = evidence.value;
    }
    if (looked.value !== null) order["observed_at"] = new Date(looked.value).toISOString();
    if (answer !== null && typeof answer !== "string") {
      order["response"] = { status: answer.status, headers: answer.headers, body_b64: base64Of(answer.body) };
    }
    try {
      const path = `/v1/keys/${key.ref}/${choice.decision === "release" ? "release" : "resolve"}`;
      const decided = await post<Key | Approval>(path, order);
      props.done(
        "approval" in decided
          ? `Nothing is done yet: the order waits for the approval of another person (idem approvals show ${decided.approval}).`
          : "Done. The record below is as the store has it now.",
      );
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      problem.value = error.problem;
      if (error.problem.verdict === "too_early") {
        // What was seen then proves nothing later.
        evidence.value = "";
        looked.value = null;
        looksFrom.value = error.problem.counts_from === undefined ? null : Date.parse(error.problem.counts_from);
      }
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
      {choice.decision === "failed_retryable" ? <Looked at={looked} from={looksFrom.value} /> : null}
      <Row label="Reason" name="reason">
        <input id="reason" required value={reason.value} onInput={(event) => {
          reason.value = event.currentTarget.value;
        }} />
      </Row>
      {choice.decision === "completed" ? <AnswerFields of={given} /> : null}
      {props.who.name !== null ? null : (
        <Row label="Your name" name="operator" note="This login proves a role and no name; the evidence log needs one.">
          <input id="operator" required pattern="[!-~]{1,64}" value={operatorName.value} onInput={(event) => {
            operatorName.value = event.currentTarget.value;
          }} />
        </Row>
      )}
      {problem.value === null ? null : <Trouble problem={problem.value} />}
      {isOther ? (
        <p class="trouble" role="alert">
          The record has changed since you opened this: it was {seen.value.state.replace("_", " ")} in attempt {seen.value.fence}. Leave this, and look again.
        </p>
      ) : null}
      <p class="buttons">
        <button type="submit" class="confirm" disabled={sending.value || !isReady}>{sending.value ? "Sending…" : choice.confirm}</button>
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

import { type Signal, useSignal } from "@preact/signals";
import { type ComponentChildren, Fragment } from "preact";

import { ApiError, get, inDoubt, post } from "../api/client";
import type { Approval, Key, KeysPage, Problem, Session } from "../api/types";
import { address } from "../state/place";
import { OperatorName, Row, Text } from "./fields";
import { FormTitle, Nothing, Trouble } from "./show";
import { timeOf } from "./words";

type Decision = "done" | "refused" | "not_done" | "drop";

interface Choice {
  title: string;
  /** What it causes, in full: it cannot be taken back. */
  causes: string;
  confirm: string;
}

const forever =
  "Each retry gets it while the gateway keeps answers, and nothing runs under this key until the gateway forgets the key. This cannot be taken back.";

export const choices: Record<Decision, Choice> = {
  done: {
    title: "It was done",
    causes: `The record completes with the answer that you give here. ${forever}`,
    confirm: "Complete it",
  },
  refused: {
    title: "It was tried, and refused for good",
    causes: `A declined card, for example. The record completes with the refusal that you give here, and nothing runs again. ${forever}`,
    confirm: "Complete it with the refusal",
  },
  not_done: {
    title: "It was not done",
    causes:
      "The work can run again: at the client's next retry, or by itself where the request is stored and has not expired. If it was done after all, it happens twice: a customer pays twice. If it was tried and refused, choose that instead.",
    confirm: "Let it run again",
  },
  drop: {
    title: "Drop the stored error",
    causes:
      "The gateway deletes the stored answer, and the client's next retry runs the work again. Do this only if you have seen that nothing was done: a 5xx alone does not prove it.",
    confirm: "Drop the answer",
  },
};

/** What may be decided about a record, and why nothing else. */
export function allowed(key: Key): { decisions: Decision[]; why: string } {
  const says_ran = key.contested || key.evidence.some((one) => one.applied && one.after === "completed");
  switch (key.state) {
    case "unknown":
      return key.contested
        ? { decisions: ["done", "refused"], why: "Evidence says that it ran, so you can only complete it, with the answer that you find." }
        : { decisions: ["done", "refused", "not_done"], why: "" };
    case "failed_retryable":
      return { decisions: ["done", "refused"], why: "It is released already: the next retry runs it. If you find that it was done, complete it now." };
    case "pending":
      return key.fence > 0
        ? { decisions: ["done", "refused"], why: "The gateway will run it by itself. If you find that it was done, complete it now." }
        : { decisions: [], why: "It has not run yet; the gateway will run it. You need do nothing." };
    case "in_progress":
      return { decisions: [], why: runs[key.dispatched ? key.lease_policy : "not_sent"] };
    case "completed":
      if ((key.response_status ?? 0) < 500) return { decisions: [], why: "It has ended. Only a stored 5xx can be dropped." };
      if (key.evidence_damaged !== undefined) return { decisions: [], why: "Its evidence cannot be read, so nobody can drop its answer." };
      return says_ran ? { decisions: [], why: "Evidence says that it ran, so nobody can drop its answer." } : { decisions: ["drop"], why: "" };
    case "expired":
      return { decisions: [], why: "The gateway no longer keeps its answer, and refuses retries until it forgets the key. You need do nothing." };
  }
}

const runs: Record<Key["lease_policy"] | "not_sent", string> = {
  unknown: "An attempt holds the key. If its lease ends without an answer, the outcome is unknown, and then you decide here.",
  resume: "An attempt holds the key. If its lease ends without an answer, the next run continues it: there is nothing to decide.",
  rerun: "An attempt holds the key. If its lease ends without an answer, the next retry runs it again: there is nothing to decide.",
  not_sent: "An attempt holds the key and has sent nothing yet. If its lease ends before, the next retry runs it: there is nothing to decide.",
};

export function base64Of(text: string): string {
  let bytes = "";
  for (const byte of new TextEncoder().encode(text)) bytes += String.fromCharCode(byte);
  return btoa(bytes);
}

/**
 * From when the operator looks, by the store's clock: an absence counts only if the look began late enough. The end of
 * a look would date it later than what was seen.
 */
export function Looking(props: {
  from: Signal<string | null>;
  key_: Pick<Key, "locked_until">;
  /** Whose lease ends last. */
  attempt?: string;
  problem: Signal<Problem | null>;
  /** What was written is of the look before. */
  again: () => void;
}) {
  const { from, key_, attempt = "The attempt", problem } = props;
  const begin = async (): Promise<void> => {
    const pressed = performance.now();
    try {
      const read = Date.parse((await get<KeysPage>("/v1/keys?limit=1")).now);
      if (from.peek() !== null) props.again();
      // Who presses looks at once, however long the answer takes: the moment is never later than the press.
      from.value = new Date(read - Math.ceil(performance.now() - pressed)).toISOString();
      problem.value = null;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      problem.value = error.problem;
    }
  };
  return (
    <p class="row">
      <span>
        {key_.locked_until === null ? "" : `${attempt} may send until ${timeOf(key_.locked_until)}, and what it sent may take a while to show. `}
        Press this first, then look. What you saw before does not count.
      </span>
      {from.value === null ? null : <span role="status">You started to look at {timeOf(from.value)}.</span>}
      <button type="button" onClick={() => void begin()}>{from.value === null ? "I start looking now" : "I start again"}</button>
    </p>
  );
}

export interface Given {
  status: string;
  type: string;
  fields: string;
  body: string;
  bodyless: boolean;
}

export const noAnswer: Given = { status: "", type: "application/json", fields: "", body: "", bodyless: false };

type Titles = Record<"done" | "refused", string>;
const titles: Titles = { done: choices.done.title, refused: choices.refused.title };

/** The answer that retries get, or what is missing in it. */
export function answerOf(
  given: Given,
  decision: Decision,
  named: Titles = titles,
): { status: number; headers: [string, string][]; body: string } | string {
  const status = /^[2-5]\d\d$/.test(given.status.trim()) ? Number(given.status) : 0;
  if (status === 0) return "Write a status from 200 to 599.";
  if (decision === "done" && status >= 400) return `${status} tells the client that it failed. If so, leave this and choose "${named.refused}".`;
  if (decision === "refused" && status < 400) return `${status} tells the client that it was done. If so, leave this and choose "${named.done}".`;
  const headers: [string, string][] = [];
  for (const line of given.fields.split("\n").map((one) => one.trim()).filter((one) => one !== "")) {
    const colon = line.indexOf(":");
    if (colon < 1) return `"${line}" is not a header field. Write it as Name: value.`;
    const name = line.slice(0, colon).trim();
    if (name.toLowerCase() === "content-type") return "Write Content-Type in its own field above.";
    headers.push([name, line.slice(colon + 1).trim()]);
  }
  if (given.bodyless) return given.body === "" ? { status, headers, body: "" } : "Remove the body, or clear 'This answer has no body'.";
  if (given.body === "") return "Write the body that your API would have sent, or mark 'This answer has no body'.";
  if (given.type.includes("json")) {
    try {
      JSON.parse(given.body);
    } catch (error) {
      return `The body is no JSON: ${error instanceof Error ? error.message : String(error)}`;
    }
  }
  return { status, headers: given.type === "" ? headers : [["Content-Type", given.type], ...headers], body: given.body };
}

export function AnswerFields({ of: given, decision, named = titles }: { of: Signal<Given>; decision: Decision; named?: Titles }) {
  const set = (change: Partial<Given>): void => {
    given.value = { ...given.value, ...change };
  };
  const answer = answerOf(given.value, decision, named);
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

interface FormProps {
  decision: Decision;
  of: Key;
  who: Session;
  done: (said: ComponentChildren, key: Key | null) => void;
  leave: () => void;
}

function Form(props: FormProps) {
  const { decision, of: key } = props;
  const choice = choices[decision];
  const completes = decision === "done" || decision === "refused";
  const evidence = useSignal("");
  const reason = useSignal("");
  const given = useSignal<Given>(noAnswer);
  const looking = useSignal<string | null>(null);
  const problem = useSignal<Problem | null>(null);
  const sending = useSignal(false);
  // What the operator saw; what has changed since then is not decided by accident.
  const seen = useSignal({ fence: key.fence, state: key.state, contested: key.contested });
  const isOther = seen.value.fence !== key.fence || seen.value.state !== key.state || seen.value.contested !== key.contested;
  const answer = completes ? answerOf(given.value, decision) : null;
  const isReady = !isOther && typeof answer !== "string" && (decision !== "not_done" || looking.value !== null);
  const orderOf = (): Record<string, unknown> => {
    const order: Record<string, unknown> = { fence: seen.value.fence, reason: reason.value };
    if (decision === "drop") return order;
    order["as"] = completes ? "completed" : "failed_retryable";
    order["evidence"] = evidence.value;
    if (looking.value !== null) order["observed_at"] = looking.value;
    if (answer !== null && typeof answer !== "string") {
      order["response"] = { status: answer.status, headers: answer.headers, body_b64: base64Of(answer.body) };
    }
    return order;
  };
  const send = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (!isReady) return;
    sending.value = true;
    try {
      const decided = await post<Partial<Key> & Partial<Approval>>(`/v1/keys/${key.ref}/${decision === "drop" ? "release" : "resolve"}`, orderOf());
      if (typeof decided.approval === "string") {
        const link = <a href={address(["approvals", decided.approval])}>see the order</a>;
        props.done(<>Nothing is done yet. Another operator must approve it: {link}</>, null);
      } else if (decided.ref === key.ref && Array.isArray(decided.evidence)) {
        props.done("Done. The page shows the record as the store has it now.", decided as Key);
      } else {
        throw new ApiError(inDoubt);
      }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      problem.value = error.problem;
      if (error.problem.verdict === "too_early") {
        // What was seen then proves nothing later.
        evidence.value = "";
        looking.value = null;
      }
    } finally {
      sending.value = false;
    }
  };
  return (
    <form class="decide" aria-label={choice.title} onSubmit={(event) => void send(event)}>
      <FormTitle>{choice.title}</FormTitle>
      <p class="causes">{choice.causes}</p>
      {decision === "not_done" ? <Looking from={looking} key_={key} problem={problem} again={() => {
        evidence.value = "";
      }} /> : null}
      {decision === "drop" ? null : (
        <Row label="What you saw, and where" name="evidence" note="For example the charge's id in the provider's books. It stays in the evidence log.">
          <textarea id="evidence" required rows={2} disabled={decision === "not_done" && looking.value === null} value={evidence.value} onInput={(event) => {
            evidence.value = event.currentTarget.value;
          }} />
        </Row>
      )}
      <Text label="Reason" name="reason" required value={reason} />
      {completes ? <AnswerFields of={given} decision={decision} /> : null}
      <OperatorName who={props.who} />
      {problem.value === null ? null : <Trouble problem={problem.value} />}
      {isOther ? (
        <p class="trouble" role="alert">
          The record has changed since you opened this. Then: {asSeen(seen.value)}; now: {asSeen(key)}. Leave this, and read the record.
        </p>
      ) : null}
      <p class="buttons">
        <button type="submit" class="confirm" disabled={sending.value || !isReady}>{sending.value ? "Sending…" : choice.confirm}</button>
        <button type="button" onClick={props.leave}>Leave it as it is</button>
      </p>
    </form>
  );
}

function asSeen(key: { state: Key["state"]; fence: number; contested: boolean }): string {
  return `${key.state.replace("_", " ")}, attempt ${key.fence}${key.contested ? ", contested" : ""}`;
}

/** The decisions that the record's state allows, each with what it causes, and why the others are missing. */
export function Choices(props: {
  of: Key;
  who: Session;
  /** What each causes stands beside it before it is chosen. */
  isSpelt?: boolean;
  after: (key: Key | null) => void;
}) {
  const open = useSignal<Decision | null>(null);
  const said = useSignal<ComponentChildren>("");
  const { decisions, why } = allowed(props.of);
  const shown = open.value;
  return (
    <>
      <p role="status" class="said">{said.value}</p>
      {shown !== null ? (
        // It stays while the record changes below it: what was typed and refused is not lost.
        <Form
          key={shown}
          decision={shown}
          of={props.of}
          who={props.who}
          done={(text, key) => {
            said.value = text;
            open.value = null;
            props.after(key);
          }}
          leave={() => {
            open.value = null;
          }}
        />
      ) : decisions.length > 0 && props.who.role !== "operator" ? (
        <Nothing>Deciding needs the role operator; you have the role {props.who.role}.</Nothing>
      ) : (
        <div class={props.isSpelt ? "spelt" : "buttons"}>
          {decisions.map((one) => (
            <Fragment key={one}>
              <button type="button" onClick={() => {
                said.value = "";
                open.value = one;
              }}>
                {choices[one].title}…
              </button>
              {props.isSpelt ? <span>{choices[one].causes}</span> : null}
            </Fragment>
          ))}
        </div>
      )}
      {why === "" ? null : <Nothing>{why}</Nothing>}
    </>
  );
}

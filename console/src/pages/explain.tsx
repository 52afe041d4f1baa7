import { signal } from "@preact/signals";

import { ApiError, post, session } from "../api/client";
import type { Explanation, Question } from "../api/routes";
import type { Problem, Session } from "../api/types";
import { Row, Text, useOrder } from "../parts/fields";
import { Nothing, Ref, Section, StateTag, Trouble } from "../parts/show";
import { Table } from "../parts/table";
import { address } from "../state/place";

// In memory alone: fields and bodies of requests may hold keys and credentials, and an address stays in histories.
const empty = { method: "POST", target: "", headers: "Idempotency-Key: ", body: "", scope: "" };
const form = {
  method: signal(empty.method),
  target: signal(empty.target),
  headers: signal(empty.headers),
  body: signal(empty.body),
  scope: signal(empty.scope),
};
/** Of the request that was in the form then. */
const explained = signal<{ of: string; is: Explanation } | null>(null);
function forget(): void {
  for (const name of ["method", "target", "headers", "body", "scope"] as const) form[name].value = empty[name];
  explained.value = null;
}
// The next user of this browser is another person.
let last = "";
session.subscribe((who) => {
  if (who === "asking") return;
  const now = who === null ? "" : `${who.login} ${who.name} ${who.role}`;
  if (now !== last) forget();
  last = now;
});

function base64Of(text: string): string {
  let bytes = "";
  for (const byte of new TextEncoder().encode(text)) bytes += String.fromCharCode(byte);
  return btoa(bytes);
}

/** The request in the form, or what is wrong with it. */
function questionOf(): Question | string {
  const headers: [string, string][] = [];
  for (const [index, line] of form.headers.value.split("\n").entries()) {
    if (line.trim() === "") continue;
    const [, name, value] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):(.*)$/.exec(line.trim()) ?? [];
    if (name === undefined || value === undefined) {
      return `Line ${index + 1} of the header is no field. Write it as Name: value.`;
    }
    headers.push([name, value.trim()]);
  }
  const scope = form.scope.value.trim();
  return {
    method: form.method.value.trim(),
    target: form.target.value.trim(),
    headers,
    body_b64: base64Of(form.body.value),
    ...(scope === "" ? {} : { scope }),
  };
}

const sentences: Record<Explanation["outcome"], string> = {
  execute: "The work would run: the gateway would send the request, or store it to be sent.",
  replay: "Nothing would run: the request would get the stored answer.",
  in_progress: "Nothing would run a second time: an attempt holds this key.",
  misuse: "Nothing would run: the key belongs to another request.",
  unknown: "Nothing would run: it is not known whether an earlier attempt did.",
  expired: "Nothing would run: the key is used up, and its answer is no longer kept.",
  refused: "Nothing would run: the gateway would refuse the request.",
  pass: "The gateway would send the request without a record: each retry runs again.",
};

function sentenceOf(is: Explanation): string {
  const passes = "The request would pass, because its route is in shadow. If it were enforced: ";
  return `${is.enforce === "shadow" ? passes : ""}${sentences[is.outcome]}`;
}

const retries: Record<string, string> = {
  never: "a retry gets the same answer",
  later: "retry later",
  same_key: "retry with the same key",
  new_key_safe: "a new key is safe, because nothing of this request ran",
};

function answerOf({ answer }: Explanation): string {
  if (answer.status === null) return "that of the upstream";
  const advice = answer.retry === null ? "" : `: ${retries[answer.retry] ?? answer.retry}`;
  return `${answer.status}${answer.code === null ? "" : ` ${answer.code}`}${advice}`;
}

const list = (parts: string[]): string => (parts.length === 0 ? "nothing" : parts.join(", "));

function comparedAs(matches: boolean | null): string {
  if (matches === null) return "not compared: there is no record, or its rules differ";
  return matches ? "the same request as in the record" : "another request than in the record";
}

function Fingerprint({ of: facts }: { of: NonNullable<Explanation["fingerprint"]> }) {
  return (
    <>
      <dt>Compared</dt>
      <dd>{comparedAs(facts.matches)}</dd>
      <dt>Counted</dt>
      <dd>{list(facts.counted)}</dd>
      <dt>Left out</dt>
      <dd>{list(facts.left_out)}</dd>
      <dt>The body counts as</dt>
      <dd>{facts.form}</dd>
    </>
  );
}

function Facts({ of: is }: { of: Explanation }) {
  return (
    <dl class="facts">
      <dt>Answer</dt>
      <dd>{answerOf(is)}</dd>
      <dt>Route</dt>
      <dd>{is.route === null ? "none" : <a href={address(["routes", is.route])}>{is.route}</a>}</dd>
      <dt>Scope</dt>
      <dd>{is.scope ?? "not known"}</dd>
      <dt>Operation</dt>
      <dd>{is.operation ?? "not known"}</dd>
      <dt>Key</dt>
      <dd>{is.key === null ? "none" : `${is.key.bytes} bytes in ${is.key.field}, ${is.key.syntax}`}</dd>
      <dt>Record</dt>
      <dd>
        {is.record !== null ? (
          <><Ref of={is.record.ref} /> <StateTag state={is.record.state} /></>
        ) : is.operation_ref !== null ? (
          <>none; its reference would be <code>{is.operation_ref}</code></>
        ) : (
          "none"
        )}
      </dd>
      {is.fingerprint === null ? null : <Fingerprint of={is.fingerprint} />}
    </dl>
  );
}

function Outcome({ of: is }: { of: Explanation }) {
  return (
    <>
      <p>{is.why}</p>
      <Facts of={is} />
      {is.differences.length === 0 ? null : (
        <>
          <h3>How it differs from the request of the record</h3>
          <Table name="Differences" columns={["part", "in the record", "in this request"]}
            rows={is.differences.map(({ part, stored, sent }) => ({
              key: part,
              cells: [part, <code>{stored}</code>, <code>{sent}</code>],
            }))} />
          <p class="note">Values are masked.</p>
        </>
      )}
    </>
  );
}

/** Nothing runs by a question: the words for an order that is in doubt would frighten. */
const nothing_ran = "Nothing ran: this only asks. Ask again.";
function asQuestion(problem: Problem): Problem {
  return problem.code === "no_answer" || problem.status >= 500 ? { ...problem, detail: nothing_ran } : problem;
}

function Lines(props: { label: string; name: "headers" | "body"; note: string; rows: number }) {
  const value = form[props.name];
  return (
    <Row label={props.label} name={props.name} note={props.note}>
      <textarea
        id={props.name}
        rows={props.rows}
        spellcheck={false}
        autocomplete="off"
        value={value.value}
        onInput={(event) => {
          value.value = event.currentTarget.value;
        }}
      />
    </Row>
  );
}

function Form() {
  const { sending, problem, send } = useOrder();
  const asked = questionOf();
  const wrong = typeof asked === "string" ? asked : null;
  const ask = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (typeof asked === "string") return;
    const of = JSON.stringify(asked);
    const answer = await send(async () => {
      const is = await post<Partial<Explanation>>("/v1/explain", asked);
      if (typeof is.outcome !== "string" || typeof is.why !== "string" || is.answer === undefined) {
        const title = "The answer is not from the gateway";
        throw new ApiError({ code: "unreadable", title, status: 0, detail: nothing_ran });
      }
      return is as Explanation;
    });
    explained.value = answer === null ? null : { of, is: answer };
  };
  const shown = explained.value;
  // An old answer beside another request would mislead.
  const is = shown !== null && shown.of === JSON.stringify(asked) ? shown.is : null;
  return (
    <>
      <form class="decide" aria-label="Explain a request" onSubmit={(event) => void ask(event)}>
        <p class="causes">Nothing runs and nothing is stored: the gateway only says what it would do.</p>
        <Text label="Method" name="method" required value={form.method} />
        <Text label="Path and query" name="target" required pattern="/.*" placeholder="/charges" value={form.target} />
        <Lines label="Header" name="headers" rows={4}
          note="A field in each line, as the client sends it: the key, and what gives the scope." />
        <Lines label="Body" name="body" rows={4} note="As the client sends it: it counts for the fingerprint." />
        <Text label="Scope" name="scope" value={form.scope} note="Whose request it is, if the fields do not say so." />
        {wrong === null ? null : <p class="trouble" role="alert">{wrong}</p>}
        {problem.value === null ? null : <Trouble problem={asQuestion(problem.value)} />}
        <p class="buttons">
          <button type="submit" disabled={sending.value || wrong !== null}>
            {sending.value ? "Asking…" : "What would happen?"}
          </button>
          <button type="button" onClick={() => {
            problem.value = null;
            forget();
          }}>Clear</button>
        </p>
      </form>
      <Section title="What would happen">
        <p class="outcome said" role="status">{is === null ? "" : sentenceOf(is)}</p>
        {is !== null ? (
          <Outcome of={is} />
        ) : (
          <Nothing>{shown === null ? "Fill in the form and ask." : "The form has changed: ask again."}</Nothing>
        )}
      </Section>
    </>
  );
}

/** What would become of a request. */
export function Explain() {
  const who = session.value as Session;
  return (
    <>
      <nav class="tabs" aria-label="Routes">
        <a href={address(["routes"])}>all routes</a>
        <a href={address(["explain"])} aria-current="page">what would happen to a request?</a>
      </nav>
      {who.role === "viewer" ? (
        <Nothing>To ask this needs the role support; you have the role viewer.</Nothing>
      ) : (
        <Form />
      )}
    </>
  );
}

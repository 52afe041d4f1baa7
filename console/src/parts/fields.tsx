import { type Signal, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

import { ApiError, operatorName } from "../api/client";
import type { Problem, Session } from "../api/types";

/** A field of a form: its name above, a hint below. `name` is the id of the input among `children`. */
export function Row(props: { label: string; name: string; note?: string | undefined; children: ComponentChildren }) {
  return (
    <p class="row">
      <label for={props.name}>{props.label}</label>
      {props.children}
      {props.note === undefined ? null : <span class="note">{props.note}</span>}
    </p>
  );
}

/** The text of a field that also follows the address: a link, or a step back, changes it without the form. */
export function useField(given: string): Signal<string> {
  const field = useSignal(given);
  const last = useRef(given);
  // Only what is new: what was typed meanwhile stays.
  useLayoutEffect(() => {
    if (last.current === given) return;
    last.current = given;
    field.value = given;
  }, [given]);
  return field;
}

/** A line of text with its name. */
export function Text(props: {
  label: string;
  name: string;
  value: Signal<string>;
  note?: string;
  type?: "text" | "search" | "number";
  required?: boolean;
  pattern?: string;
  placeholder?: string;
}) {
  const { label, name, value, note, ...rest } = props;
  return (
    <Row label={label} name={name} note={note}>
      <input id={name} {...rest} value={value.value} onInput={(event) => {
        value.value = event.currentTarget.value;
      }} />
    </Row>
  );
}

/** One of a few choices, each a value and what the page says for it. */
export function Choice(props: { label: string; name: string; value: Signal<string>; of: [string, string][]; note?: string }) {
  return (
    <Row label={props.label} name={props.name} note={props.note}>
      <select id={props.name} value={props.value.value} onChange={(event) => {
        props.value.value = event.currentTarget.value;
      }}>
        {props.of.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
      </select>
    </Row>
  );
}

export function Check(props: { label: string; value: Signal<boolean>; note?: string }) {
  return (
    <p>
      <label>
        <input type="checkbox" checked={props.value.value} onChange={(event) => {
          props.value.value = event.currentTarget.checked;
        }} /> {props.label}
      </label>
      {props.note === undefined ? null : <span class="note"> {props.note}</span>}
    </p>
  );
}

/** Asks for a name where the login proves none; every order needs it. */
export function OperatorName({ who }: { who: Session }) {
  if (who.name !== null) return null;
  return (
    <Text label="Your name" name="operator" required pattern="[!-~]{1,64}" value={operatorName}
      note="The gateway does not know who you are: write your name for the log." />
  );
}

/** An order under way: whether it is sent now, and why it was refused. */
export function useOrder(): {
  sending: Signal<boolean>;
  problem: Signal<Problem | null>;
  /** Sends; null: it was refused, and `problem` says why. */
  send: <T>(order: () => Promise<T>) => Promise<T | null>;
} {
  const sending = useSignal(false);
  const problem = useSignal<Problem | null>(null);
  const send = async <T,>(order: () => Promise<T>): Promise<T | null> => {
    sending.value = true;
    try {
      const answer = await order();
      problem.value = null;
      return answer;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      problem.value = error.problem;
      return null;
    } finally {
      sending.value = false;
    }
  };
  return { sending, problem, send };
}

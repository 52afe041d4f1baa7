import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { offline } from "../api/client";
import type { Problem, State } from "../api/types";
import { address } from "../state/place";
import { now } from "../state/live";
import { meanings, span } from "./words";

/** A moment: how long ago, with the exact time of the store behind it. */
export function Moment({ at }: { at: string | null }) {
  if (at === null) return <span class="none">none</span>;
  const seconds = (now.value - Date.parse(at)) / 1000;
  const away = Math.abs(seconds);
  // The page's clock ticks once a second, and is not the store's.
  const text = away < 2 ? "now" : seconds > 0 ? `${span(away)} ago` : `in ${span(away)}`;
  return (
    <time dateTime={at} title={at}>
      {text}
    </time>
  );
}

const signs: Record<State, string> = {
  unknown: "?",
  in_progress: "▸",
  pending: "…",
  failed_retryable: "↻",
  completed: "✓",
  expired: "–",
};

/** A state with its sign: colour is never the only difference. */
export function StateTag({ state }: { state: State }) {
  return (
    <span class={`state ${state}`} title={meanings[state]}>
      <span aria-hidden="true">{signs[state]}</span> {state.replace("_", " ")}
    </span>
  );
}

export function Ref({ of }: { of: string }) {
  return (
    <a class="ref" href={address(["operation", of])}>
      {of.slice(0, 8)}
      <span class="rest">{of.slice(8)}</span>
    </a>
  );
}

/** What went wrong, and what to do. That the gateway is away stands above the page already. */
export function Trouble({ problem }: { problem: Problem }) {
  if (problem.code === "offline") {
    // It answers other questions again, and this one not yet.
    return offline.value !== null ? null : <p class="trouble" role="alert">The gateway has not answered this: what you see may be old. The page asks again.</p>;
  }
  const advice: Record<string, string> = {
    store_silent: "The gateway runs, and its store does not answer: look at the store's server or disk.",
    role_missing: "Ask a colleague who has that role.",
    login_required: "Log in again.",
  };
  const areApart = problem.detail?.includes("seconds apart") ?? false;
  const isForeign = problem.code === "bad_request" && problem.status === 403;
  return (
    <div class="trouble" role="alert">
      <strong>{isForeign ? "The gateway refused the order: it seems to come from another page" : problem.title}</strong>
      {problem.detail === undefined ? null : <p>{problem.detail}</p>}
      {advice[problem.code] ? <p class="advice">{advice[problem.code]}</p> : null}
      {isForeign ? <p class="advice">Load this page again. A proxy in front must pass the Host on that the browser sent.</p> : null}
      {areApart ? <p class="advice">Decide with idem keys resolve, without --observed-at, and set the clocks right.</p> : null}
    </div>
  );
}

export function Section(props: { title: string; note?: string; children: ComponentChildren }) {
  return (
    <section aria-label={props.title}>
      <h2>{props.title}</h2>
      {props.note ? <p class="note">{props.note}</p> : null}
      {props.children}
    </section>
  );
}

/** The title of a form that has just opened: the focus goes there, for those who do not see it open. */
export function FormTitle({ children }: { children: ComponentChildren }) {
  const title = useRef<HTMLHeadingElement>(null);
  useEffect(() => title.current?.focus(), []);
  return <h3 ref={title} tabIndex={-1}>{children}</h3>;
}

/** What became of an order: it stands outside of the form, which goes, and the focus comes here. */
export function Said({ children }: { children: ComponentChildren }) {
  const line = useRef<HTMLParagraphElement>(null);
  const isEmpty = children === "" || children === null;
  useEffect(() => {
    if (!isEmpty) line.current?.focus();
  }, [isEmpty]);
  return <p ref={line} role="status" class="said" tabIndex={-1}>{children}</p>;
}

/** Where nothing is to be seen: what is normal. */
export function Nothing({ children }: { children: ComponentChildren }) {
  return <p class="nothing">{children}</p>;
}

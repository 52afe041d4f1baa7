import { type Signal, computed, signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";

import { ApiError } from "../api/client";
import type { Problem } from "../api/types";

export interface Loaded<T> {
  value: T | null;
  problem: Problem | null;
  at: number | null;
}

/** The time of the page, once a second while it is visible. */
export const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1_000);

// A screen that nobody uses may stand in an office: it asks no more, so its session ends.
const unused_max = 30 * 60_000;
const used = signal(Date.now());
for (const kind of ["keydown", "pointerdown"]) {
  addEventListener(kind, () => {
    used.value = Date.now();
    now.value = Date.now();
  });
}
export const unused = computed(() => now.value - used.value > unused_max);

/**
 * What `load` returns, again and again while the page is visible. A failure keeps the last value
 * and says since when it is old.
 */
export function useLive<T>(
  load: () => Promise<T>,
  milliseconds: number,
  depends: unknown[],
): { loaded: Signal<Loaded<T>>; set: (value: T) => void; again: () => void } {
  const loaded = useMemo(() => signal<Loaded<T>>({ value: null, problem: null, at: null }), depends);
  const turns = useMemo(() => ({ last: 0, asking: false }), depends);
  const round = useMemo(
    () => async (): Promise<void> => {
      if (turns.asking) return;
      turns.asking = true;
      const mine = ++turns.last;
      try {
        const value = await load();
        // What was asked before a decision is older than the decision's own answer.
        if (mine === turns.last) loaded.value = { value, problem: null, at: Date.now() };
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        loaded.value = { ...loaded.peek(), problem: error.problem };
      } finally {
        turns.asking = false;
      }
    },
    depends,
  );
  const set = (value: T): void => {
    turns.last += 1;
    loaded.value = { value, problem: null, at: Date.now() };
  };
  useEffect(() => {
    void round();
    const timer = setInterval(() => {
      if (!document.hidden && !unused.peek()) void round();
    }, milliseconds);
    const seen = (): void => {
      if (!document.hidden && !unused.peek()) void round();
    };
    document.addEventListener("visibilitychange", seen);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, depends);
  return { loaded, set, again: () => void round() };
}

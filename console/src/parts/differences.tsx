import type { Retry } from "../api/retries";

/** In which parts a misuse differs from the request that made the record; values are masked. */
export function Differences({ of }: { of: Pick<Retry, "differences" | "why"> }) {
  if (of.differences.length === 0) return of.why === null ? null : <details><summary>Which part differs is not known</summary>{of.why}</details>;
  return (
    <ul class="differences">
      {of.differences.map((one) => (
        <li key={one.part}>
          <b>{one.part}</b>: {one.stored} at first, {one.sent} now
        </li>
      ))}
    </ul>
  );
}

import { computed, signal } from "@preact/signals";

/**
 * Where the page is: behind the number sign, which no browser sends, so that neither a log nor a
 * proxy gets the keys of a search.
 */
export interface Place {
  path: string[];
  filters: URLSearchParams;
}

/** As it is where it is no good encoding. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function read(): Place {
  const text = location.hash.replace(/^#\/?/, "");
  const [path = "", filters = ""] = text.split("?", 2);
  return {
    path: path.split("/").filter((part) => part !== "").map(decoded),
    filters: new URLSearchParams(filters),
  };
}

export const place = signal<Place>(read());
addEventListener("hashchange", () => {
  place.value = read();
});

export const page = computed(() => place.value.path[0] ?? "overview");

export function address(path: string[], filters: Record<string, string> = {}): string {
  const given = new URLSearchParams(
    Object.entries(filters).filter(([, value]) => value !== ""),
  ).toString();
  return `#/${path.map(encodeURIComponent).join("/")}${given === "" ? "" : `?${given}`}`;
}

/** Filters stay in the address, so that a link leads to the same view. */
export function setFilters(changes: Record<string, string>): void {
  const filters = new URLSearchParams(place.peek().filters);
  for (const [name, value] of Object.entries(changes)) {
    if (value === "") filters.delete(name);
    else filters.set(name, value);
  }
  const text = filters.toString();
  location.hash = `#/${place.peek().path.map(encodeURIComponent).join("/")}${text === "" ? "" : `?${text}`}`;
}

export function go(path: string[], filters: Record<string, string> = {}): void {
  location.hash = address(path, filters);
}

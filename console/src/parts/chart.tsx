import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type UPlot from "uplot";

import { timeOf } from "./words";

export interface Series {
  name: string;
  values: (number | null)[];
}

interface Props {
  title: string;
  /** When each value was, in seconds since 1970, and how many seconds up to the last one are shown. */
  times: { ends: number[]; seconds: number };
  series: Series[];
  /** A value with its unit. */
  text: (value: number) => string;
  /** Where the scale ends at least; by default at 1. */
  scale?: number;
}

const height = 96;
/** Seconds that a chart shows at least. */
const young = 300;
/** Of the first, second and third line: a dash for each, so that colour is not the only difference. */
const dashes: number[][] = [[], [6, 4], [2, 3]];
const signs = ["━━", "╍╍", "┈┈"];
const colours = ["--link", "--service", "--money"];

const dark = matchMedia("(prefers-color-scheme: dark)");
const theme = signal(dark.matches);
dark.addEventListener("change", () => {
  theme.value = dark.matches;
});

function known(values: (number | null)[]): number[] {
  return values.filter((value) => value !== null);
}

/** The newest value and the greatest one, for those who do not see the lines. */
function inWords(one: Series, { times, text }: Props): string {
  const newest = known(one.values).at(-1);
  if (newest === undefined) return "not known";
  const most = Math.max(...known(one.values));
  const at = times.ends[one.values.indexOf(most)] ?? 0;
  return most <= newest ? `${text(newest)} now` : `${text(newest)} now, most ${text(most)} at ${timeOf(new Date(at * 1_000).toISOString())}`;
}

/** A colour of the page as a canvas needs it: of the theme that applies. */
function colourOf(name: string, here: HTMLElement): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  here.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

function options(props: Props, width: number, colour: (name: string) => string): UPlot.Options {
  const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
  return {
    width,
    height,
    legend: { show: false },
    cursor: { show: false },
    // Nothing is above none, and a line of zeros lies at the bottom.
    scales: {
      // A young process has no whole hour yet.
      x: { range: (_, first, last) => [Math.max(Math.min(first, last - young), last - props.times.seconds), last] },
      y: { range: (_, __, most) => [0, Math.max(most * 1.1, props.scale ?? 1)] },
    },
    axes: [
      { ...axis, size: 22, space: 70, values: (_, seconds) => seconds.map((one) => new Date(one * 1_000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })) },
      { ...axis, size: 62, space: 28, values: (_, values) => values.map((one) => props.text(one)) },
    ],
    series: [
      {},
      ...props.series.map((_, index) => ({
        stroke: colour(colours[index] ?? "--text"),
        width: 2,
        dash: dashes[index] ?? [],
        points: { show: false },
      })),
    ],
  };
}

/** A small chart over time, with its newest and greatest values in words. */
export function Chart(props: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | null>(null);
  const isDark = theme.value;
  useEffect(() => {
    let gone = false;
    let resized: ResizeObserver | null = null;
    // The library comes with the first chart: the first page does not wait for it.
    void import("uplot").then(({ default: Plot }) => {
      const here = box.current;
      if (gone || here === null) return;
      const data: UPlot.AlignedData = [props.times.ends, ...props.series.map((one) => one.values)];
      plot.current = new Plot(options(props, here.clientWidth, (name) => colourOf(name, here)), data, here);
      resized = new ResizeObserver(() => plot.current?.setSize({ width: here.clientWidth, height }));
      resized.observe(here);
    });
    return () => {
      gone = true;
      resized?.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [isDark, props.series.length, props.times.seconds]);
  useEffect(() => {
    plot.current?.setData([props.times.ends, ...props.series.map((one) => one.values)]);
  }, [props.times.ends]);
  return (
    <figure class="chart">
      <figcaption>
        <b>{props.title}</b>
        <ul>
          {props.series.map((one, index) => (
            <li key={one.name}>
              <span aria-hidden="true" class={`line-${index}`}>{signs[index]}</span> {one.name}: {inWords(one, props)}
            </li>
          ))}
        </ul>
      </figcaption>
      <div ref={box} aria-hidden="true" />
    </figure>
  );
}

// The curves, drawn by uPlot under the lanes, over the same span of time.
"use strict";

/** Keep the powers of ten of the marks of a logarithmic axis. */
const decades = (_, marks) => marks.map(each => Number.isInteger(Math.log10(each)) ? each : null);

/** Draw all curves into their element, and keep them at the span of the view. */
class Curves {
  constructor(data, view, gutter) {
    Object.assign(this, {data, view, gutter, plots: []});
    view.watchers.push(() => this._follow());
  }

  draw() {
    for (const plot of this.plots) plot.destroy();
    const {sampled, isr, open, commits} = this.data.curves;
    const held = (column, at) => [[...at, this.data.length], [...column, column.at(-1)]]; // until the end
    const partitions = Object.entries(sampled.of);
    const flavours = ["committed", "aborted", "indeterminate", "fault", "leader", "rebalance"];
    this.plots = [
      this._plot("records/s", [commits.at, sampled.at], [
        ["committed", commits.records, 0, "committed", {fill: true}], ["sent", sampled.in, 1, "aborted"]]),
      this._plot("records behind", [sampled.at], [
        ["lag of the group", sampled.lag, 0, "committed"], ["HW − LSO", sampled.behind, 0, "indeterminate"],
        ...partitions.map(([name, lag], index) =>
          [`HW − LSO ${name}`, lag, 0, flavours[index % flavours.length], {show: false, dash: [4, 3 + index % 4]}])]),
      this._plot("open", [held(open.count, open.at)[0]], [
        ["open transactions", held(open.count, open.at)[1], 0, "committed", {stepped: true}]]),
      this._plot("least ISR", [held(isr.least, isr.at)[0]], [
        ["in-sync replicas of the worst partition", held(isr.least, isr.at)[1], 0, "leader", {stepped: true}]]),
      this._plot("commit ms", [commits.at], [
        ["p50", commits.p50, 0, "committed"], ["p95", commits.p95, 0, "aborted", {dash: [6, 3]}],
        ["p99", commits.p99, 0, "indeterminate", {dash: [2, 2]}]], {logarithmic: true}),
    ].filter(Boolean);
    this._follow();
  }

  /** Return a plot of curves [label, values, which of the times, colour, look]; null if nothing is known. */
  _plot(title, times, curves, {logarithmic = false} = {}) {
    const known = curves.filter(([, values]) => values.some(each => each !== null && each !== undefined));
    if (!known.length) return null;
    const of = index => known.filter(curve => curve[2] === index).map(curve => curve[1]);
    const joined = uPlot.join(times.map((at, index) => [at.map(each => each / 1000), ...of(index)])
      .filter(table => table.length > 1));
    const ordered = times.flatMap((_, index) => known.filter(curve => curve[2] === index));
    const axis = {stroke: colour("faint"), grid: {stroke: colour("line"), width: 1}, ticks: {show: false}};
    const host = byId("curves"), gutter = this.gutter();
    return new uPlot({
      width: host.clientWidth, height: 118, legend: {live: true}, padding: [6, 8, 0, 0],
      cursor: {sync: {key: "run"}, drag: {x: true, y: false, setScale: false}, points: {size: 5}},
      scales: {x: {time: false, range: () => [this.view.from / 1000, this.view.to / 1000]},
        y: logarithmic ? {distr: 3} : {range: (_, low, high) => [0, high > 0 ? high * 1.08 : 1]}},
      axes: [{...axis, size: 22, values: (_, ticks) => ticks.map(each => `${+each.toFixed(4)} s`)},
        {...axis, ...(logarithmic ? {filter: decades, grid: {...axis.grid, filter: decades}} : {}),
          size: gutter, label: title, labelSize: 16, labelFont: "12px system-ui", values: (_, ticks) =>
          ticks.map(each => each === null ? "" : Intl.NumberFormat("en", {notation: "compact"}).format(each))}],
      series: [{label: "s"}, ...ordered.map(([label, , , tone, look = {}]) => ({
        label, stroke: colour(tone), width: 1.5, dash: look.dash, show: look.show ?? true, spanGaps: true,
        fill: look.fill ? colour("under") : undefined, points: {show: false},
        paths: look.stepped ? uPlot.paths.stepped({align: 1}) : undefined,
      }))],
      hooks: {
        drawClear: [plot => this._bands(plot)],
        setSelect: [plot => {
          const {left, width} = plot.select;
          if (width > 4) this.view.set(plot.posToVal(left, "x") * 1000, plot.posToVal(left + width, "x") * 1000);
          plot.setSelect({left: 0, width: 0, top: 0, height: 0}, false);
        }],
      },
    }, joined, host);
  }

  _bands(plot) {
    const {ctx, bbox} = plot;
    ctx.save();
    ctx.fillStyle = colour("band");
    for (const fault of this.data.faults) {
      const left = Math.max(plot.valToPos(fault.begin / 1000, "x", true), bbox.left);
      const right = Math.min(plot.valToPos(fault.end / 1000, "x", true), bbox.left + bbox.width);
      if (right > left) ctx.fillRect(left, bbox.top, Math.max(right - left, 2), bbox.height);
    }
    ctx.restore();
  }

  _follow() {
    for (const plot of this.plots) plot.setScale("x", {min: this.view.from / 1000, max: this.view.to / 1000});
  }
}

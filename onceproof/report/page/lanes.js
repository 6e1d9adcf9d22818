// The lanes: faults as bands, a bar for each transaction, ticks for requests, rebalances and moves of leaders.
"use strict";

const LANE = 22, FAULT = 18, AXIS = 22;

class Lanes {
  constructor(data, view, chosen) {
    Object.assign(this, {data, view, chosen});
    this.canvas = byId("lanes");
    this.tip = byId("tip");
    this.selected = null;
    this.hasLeaders = data.ticks.some(tick => tick.kind === "leader" || !tick.lane);
    this.top = data.faults.length * FAULT + (this.hasLeaders ? FAULT : 0) + 6;
    this.height = this.top + data.lanes.length * LANE + AXIS;
    this.ofLane = data.lanes.map(() => []);
    data.transactions.lane.forEach((lane, index) => this.ofLane[lane].push(index));
    this.rowOf = {};
    data.lanes.forEach(([name, slot], row) => { if (!slot) this.rowOf[name] = row; });
    view.watchers.push(() => this.draw());
    this._listen();
  }

  get gutter() { return this.canvas.clientWidth < 500 ? 64 : 90; }
  get width() { return this.canvas.clientWidth - this.gutter - 8; }
  x(ms) { return this.gutter + (ms - this.view.from) / this.view.span * this.width; }
  at(x) { return this.view.from + (x - this.gutter) / this.width * this.view.span; }

  draw() {
    const {canvas} = this, ratio = window.devicePixelRatio || 1;
    canvas.style.height = `${this.height}px`;
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = this.height * ratio;
    const pen = this.pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    this._labels();
    pen.save();
    pen.beginPath();
    pen.rect(this.gutter, 0, this.width + 8, this.height);
    pen.clip();
    this._axis();
    this._faults();
    this.ofLane.forEach((_, lane) => this._bars(lane));
    this._ticks();
    if (this.range) {
      pen.fillStyle = colour("choice");
      pen.fillRect(Math.min(...this.range), 0, Math.abs(this.range[1] - this.range[0]), this.height - AXIS);
    }
    pen.restore();
  }

  _labels() {
    const {pen} = this;
    pen.fillStyle = colour("faint");
    this.data.lanes.forEach(([name, slot], lane) => {
      const text = slot ? `· ${slot + 1}` : this.gutter < 80 ? name.replace("worker", "w") : name;
      pen.fillText(text, slot ? 40 : 0, this.top + lane * LANE + LANE / 2);
    });
    if (this.hasLeaders) pen.fillText("cluster", 0, this.data.faults.length * FAULT + FAULT / 2);
    if (this.data.faults.length) pen.fillText("faults", 0, FAULT / 2);
  }

  _axis() {
    const {pen, view} = this, wanted = view.span / Math.max(2, this.width / 90);
    const power = 10 ** Math.floor(Math.log10(wanted));
    const step = [1, 2, 5, 10].map(each => each * power).find(each => each >= wanted);
    pen.lineWidth = 1;
    for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
      const x = this.x(at);
      pen.strokeStyle = colour("line");
      pen.beginPath();
      pen.moveTo(x, 0);
      pen.lineTo(x, this.height - AXIS);
      pen.stroke();
      pen.fillStyle = colour("faint");
      const text = `${+(at / 1000).toFixed(4)} s`;
      pen.fillText(text, Math.min(Math.max(this.gutter, x - pen.measureText(text).width / 2),
        this.gutter + this.width + 6 - pen.measureText(text).width), this.height - AXIS / 2);
    }
  }

  _faults() {
    const {pen} = this;
    this.data.faults.forEach((fault, row) => {
      const left = this.x(fault.begin), wide = Math.max(this.x(fault.end) - left, 2);
      pen.fillStyle = colour("band");
      pen.fillRect(left, this.top - 6, wide, this.height - AXIS - this.top + 6);
      pen.fillStyle = colour("fault");
      pen.fillRect(left, row * FAULT + 3, wide, FAULT - 7);
      pen.fillStyle = colour("ink");
      const text = `${fault.id} ${fault.note}`, room = this.gutter + this.width;
      const space = pen.measureText(text).width + 6;
      const after = left + wide + 5;
      const x = after + space < room ? after : Math.max(left - space, this.gutter + 2);
      pen.fillText(text, x, row * FAULT + FAULT / 2);
    });
  }

  _bars(lane) {
    const {pen, data: {transactions}} = this, y = this.top + lane * LANE + 4, high = LANE - 8;
    let drawnTo = -1;
    for (const index of this._visible(lane)) {
      const kind = transactions.outcome[index], left = this.x(transactions.begin[index]);
      const wide = Math.max(this.x(transactions.end[index]) - left, 1.5);
      if (kind === "c" && left + wide < drawnTo + 0.4 && index !== this.selected) continue; // it would not be seen
      drawnTo = left + wide;
      bar(pen, kind, left, y, wide > 4 ? wide - 1 : wide, high);
      if (index === this.selected) {
        pen.strokeStyle = colour("ink");
        pen.lineWidth = 2;
        pen.strokeRect(left - 2, y - 2, wide + 3, high + 4);
      }
    }
  }

  /** Return the transactions of a lane that the view shows; those of a lane do not overlap, and are in order. */
  _visible(lane) {
    const {begin, end} = this.data.transactions, all = this.ofLane[lane];
    let low = 0, high = all.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (end[all[middle]] < this.view.from) low = middle + 1; else high = middle;
    }
    const shown = [];
    for (let place = low; place < all.length && begin[all[place]] <= this.view.to; place++) shown.push(all[place]);
    return shown;
  }

  _ticks() {
    const {pen} = this, clusterRow = this.data.faults.length * FAULT;
    for (const tick of this.data.ticks) {
      const x = this.x(tick.at), row = this.rowOf[tick.lane];
      if (x < this.gutter - 5 || x > this.gutter + this.width + 5) continue;
      const top = row === undefined ? clusterRow : this.top + row * LANE;
      pen.fillStyle = colour(tick.kind);
      pen.beginPath();
      if (tick.kind === "rebalance") { // a triangle that points down
        pen.moveTo(x - 4, top); pen.lineTo(x + 4, top); pen.lineTo(x, top + 6);
      } else if (tick.kind === "leader") { // a diamond
        pen.moveTo(x, top + 3); pen.lineTo(x + 4, top + 8); pen.lineTo(x, top + 13); pen.lineTo(x - 4, top + 8);
      } else {
        pen.rect(x - 1, top, 2, row === undefined ? 14 : LANE);
      }
      pen.fill();
    }
  }

  /** Return what is at a place of the canvas: a transaction, a fault or a tick, with its text. */
  found(x, y) {
    const tick = this.data.ticks.find(each => {
      const row = this.rowOf[each.lane];
      const top = row === undefined ? this.data.faults.length * FAULT : this.top + row * LANE;
      return Math.abs(this.x(each.at) - x) < 4 && y >= top && y < top + (row === undefined ? FAULT : 8);
    });
    if (tick) return {says: `${seconds(tick.at)} s  ${tick.says}`};
    const fault = this.data.faults[Math.floor(y / FAULT)];
    if (fault && this.x(fault.begin) - 3 <= x && x <= this.x(fault.end) + 3) {
      return {says: `${fault.id} on ${fault.note}: ${seconds(fault.begin)} to ${seconds(fault.end)} s`};
    }
    const lane = Math.floor((y - this.top) / LANE);
    const index = (this.ofLane[lane] ? this._visible(lane) : []).findLast(each =>
      this.x(this.data.transactions.begin[each]) - 2 <= x && x <= this.x(this.data.transactions.end[each]) + 2);
    return index === undefined ? null : {index, says: titleOf(this.data, index)};
  }

  choose(index, {show = false} = {}) {
    this.selected = index;
    if (show && index !== null) this.view.show(this.data.transactions.begin[index]);
    this.draw();
    this.chosen(index);
  }

  _listen() {
    const {canvas, view} = this;
    let pressed = null;
    const place = event => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener("pointerdown", event => {
      if (event.button) return;
      pressed = place(event);
      if (event.pointerType === "mouse") canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", event => {
      const [x, y] = place(event);
      if (pressed && event.pointerType === "mouse" && Math.abs(x - pressed[0]) > 4) {
        this.range = [pressed[0], x];
        this.draw();
      }
      const what = this.found(x, y);
      this.tip.hidden = !what;
      if (what) {
        this.tip.textContent = what.says;
        this.tip.style.left = `${Math.min(x + 12, Math.max(0, canvas.clientWidth - this.tip.offsetWidth))}px`;
        this.tip.style.top = `${y + 16}px`;
      }
      canvas.style.cursor = what && what.index !== undefined ? "pointer" : "crosshair";
    });
    canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    canvas.addEventListener("pointercancel", () => { pressed = null; this.range = null; });
    canvas.addEventListener("pointerup", event => {
      const [x, y] = place(event), {range} = this;
      this.range = null;
      if (pressed && range) view.set(...[this.at(range[0]), this.at(range[1])].sort((a, b) => a - b));
      else if (pressed) this.choose(this.found(x, y)?.index ?? null);
      pressed = null;
    });
    canvas.addEventListener("dblclick", () => view.reset());
    canvas.addEventListener("wheel", event => {
      if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return; // the page scrolls
      event.preventDefault();
      if (event.shiftKey) view.pan((event.deltaX || event.deltaY) / 1000);
      else view.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.at(place(event)[0]));
    }, {passive: false});
    canvas.addEventListener("keydown", event => {
      const act = this._keys()[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act();
    });
  }

  _keys() {
    const {view} = this;
    return {
      "ArrowLeft": () => view.pan(-0.2), "ArrowRight": () => view.pan(0.2),
      "+": () => view.zoom(0.5), "=": () => view.zoom(0.5), "-": () => view.zoom(2), "0": () => view.reset(),
      "n": () => this._step(1), "p": () => this._step(-1),
      "ArrowDown": () => this._change(1), "ArrowUp": () => this._change(-1),
      "Escape": () => this.choose(null),
    };
  }

  /** Choose the next transaction of the lane, or the one before. */
  _step(by) {
    const lane = this.selected === null ? this._change(0) : this.data.transactions.lane[this.selected];
    if (lane === undefined) return;
    const all = this.ofLane[lane], next = all[all.indexOf(this.selected) + by];
    if (next !== undefined) this.choose(next, {show: true});
  }

  /** Choose a transaction in the next lane, or the one before, at about the same time. */
  _change(by) {
    const {begin, lane} = this.data.transactions, lanes = this.ofLane.length;
    if (!lane.length) return;
    const at = this.selected === null ? this.view.from : begin[this.selected];
    let row = this.selected === null ? 0 : lane[this.selected] + by;
    while (row > 0 && row < lanes && !this.ofLane[row].length) row += by || 1;
    const all = this.ofLane[row];
    if (!all || !all.length) return;
    this.choose(all.find(each => begin[each] >= at) ?? all[all.length - 1], {show: true});
  }
}

/** Draw the bar of a transaction. Outcomes differ by shape as well as by colour. */
function bar(pen, kind, left, top, wide, high) {
  pen.fillStyle = pen.strokeStyle = colour(OUTCOMES[kind]);
  pen.lineWidth = 1.5;
  if (kind === "c") pen.fillRect(left, top, wide, high);
  else if (kind === "a") pen.fillRect(left, top + high / 2, wide, high / 2);
  else {
    pen.strokeRect(left + 0.75, top + 0.75, Math.max(wide - 1.5, 0.5), high - 1.5);
    if (kind === "i") {
      pen.beginPath();
      for (let x = left; x < left + wide; x += 6) {
        pen.moveTo(x, top + high);
        pen.lineTo(Math.min(x + 6, left + wide), top);
      }
      pen.stroke();
    }
  }
}

/** Return a transaction in a line. */
function titleOf(data, index) {
  const {transactions: all, lanes} = data, [name] = lanes[all.lane[index]];
  const begin = all.begin[index], end = all.end[index];
  return `${name}.${all.incarnation[index]} transaction ${all.number[index]}: ${OUTCOMES[all.outcome[index]]}, ` +
    `${all.records[index].toLocaleString("en")} inputs, ${seconds(begin)} to ${seconds(end)} s`;
}

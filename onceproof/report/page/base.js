// What all parts of the page share: the data, the visible span of time, colours, and small helpers.
"use strict";

const OUTCOMES = {c: "committed", a: "aborted", i: "indeterminate", o: "open"};
const MIN_SPAN_MS = 5;

/** Return the element with this id. */
const byId = id => document.getElementById(id);

/** Return a new element with properties and children; a text as a child is never read as HTML. */
function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** Return the value of a colour of the page's style, which differs in dark mode and on paper. */
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** Return milliseconds as seconds, with as many digits as a span of time needs. */
const seconds = (ms, span = 1000) => (ms / 1000).toFixed(span < 200 ? 4 : span < 20000 ? 3 : 2);

/** Decode the data of the page: JSON, compressed with gzip, in base64. */
async function decoded() {
  const bytes = Uint8Array.from(atob(byId("data").textContent.trim()), each => each.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

/** The span of time that all charts show, in milliseconds. */
class View {
  constructor(length) {
    this.length = Math.max(length, 1);
    this.from = 0;
    this.to = this.length;
    this.watchers = [];
  }

  get span() { return this.to - this.from; }

  set(from, to) {
    const span = Math.min(Math.max(to - from, MIN_SPAN_MS), this.length);
    this.from = Math.min(Math.max(from, 0), this.length - span);
    this.to = this.from + span;
    for (const watcher of this.watchers) watcher();
  }

  reset() { this.set(0, this.length); }

  pan(part) { this.set(this.from + part * this.span, this.to + part * this.span); }

  zoom(factor, around = (this.from + this.to) / 2) {
    this.set(around - (around - this.from) * factor, around + (this.to - around) * factor);
  }

  show(at) { if (at < this.from || at > this.to) this.set(at - this.span / 2, at + this.span / 2); }
}

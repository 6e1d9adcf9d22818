// The story of one record, or of one transaction, from the facts that the page contains (`onceproof trace` tells the
// same from the tables).
"use strict";

const STORIES_MAX = 20;

class Facts {
  constructor(data) {
    this.data = data;
    this.sentOf = index(data.sent?.number);
    this.outputsOf = index(data.outputs?.number);
  }

  /** Return the facts about the record at an offset of `topic/partition`. */
  of(place, offset) {
    return (this.data.facts?.[place] ?? []).filter(([first, last]) => first <= offset && offset <= last);
  }

  /** Return the steps of an input's story: [witness, text, milliseconds or null]; null if there is no such input. */
  input(number) {
    const {sent, outputs, words} = this.data, mine = this.sentOf.get(number);
    if (!mine) return null;
    const steps = [], places = [], covering = [];
    for (const row of mine) {
      const partition = sent.partition[row], offset = sent.offset[row];
      const known = offset !== null && offset !== undefined;
      steps.push(["generator", `sent to input/${partition}, ` + (known ? `acknowledged at offset ${offset}`
        : sent.acknowledged[row] ? "acknowledged without an offset" : "not acknowledged, so it may be in the log")]);
      if (known) places.push([partition, offset]);
    }
    for (const [partition, offset] of places) {
      const told = this.of(`input/${partition}`, offset).map(step);
      steps.push(...told.filter(([witness]) => witness !== "group"));
      const covers = told.filter(([witness]) => witness === "group");
      covering.push(...(covers.length || !this.data.grouped ? covers : [["group", words.not_covered]]));
    }
    const made = this.outputsOf.get(number) ?? [];
    if (!made.length) steps.push(["outputs", words.no_output]);
    for (const row of made) {
      const place = outputs.places[outputs.place[row]], offset = outputs.offset[row];
      if (offset === null) steps.push(["outputs", `a row of the table ${place}`]);
      else steps.push(["outputs", `${place} offset ${offset}${outputs.makers[outputs.made[row]]}`],
        ...this.of(place, offset).map(step));
    }
    steps.push(...covering);
    const found = this.data.found.filter(each => each.number === number ||
      places.some(([partition, offset]) => each.place[0] === partition && each.place[1] === offset));
    steps.push(...[...new Set(found.map(each => each.says))].map(says => ["verdict", says]));
    return {title: `input ${number}`, steps};
  }

  /** Return the story of the record at a place; null if nothing is known of it. */
  place(place, offset) {
    const {outputs, sent} = this.data, title = `${place} offset ${offset}`;
    const table = outputs?.places.indexOf(place) ?? -1;
    const row = table < 0 ? -1 : outputs.offset.findIndex((each, at) => each === offset && outputs.place[at] === table);
    let number = row < 0 ? null : outputs.number[row];
    if (place.startsWith("input/") && sent) {
      const at = sent.offset.findIndex((each, at) => each === offset && sent.partition[at] === +place.slice(6));
      number = at < 0 ? null : sent.number[at];
    }
    if (number !== null) {
      const story = this.input(number);
      return story && {title: `${title}: ${story.title}`, steps: story.steps};
    }
    const told = this.of(place, offset).map(step);
    return told.length ? {title, steps: told} : null;
  }

  key(text) {
    const {sent} = this.data, key = sent?.keys.indexOf(text) ?? -1;
    if (key < 0) return [];
    const numbers = sent.number.filter((_, row) => sent.key[row] === key).sort((a, b) => a - b);
    return numbers.slice(0, STORIES_MAX).map(number => this.input(number));
  }

  id(text) {
    const told = this.data.ids?.[text];
    return told ? [{title: text, steps: told.map(says => ["coordinator", says])}] : [];
  }

  /** Return the stories that a text asks for: a number, a place such as output/3:19, a key, or a transactional id. */
  asked(text) {
    const place = text.match(/^([a-z][a-z-]*\/\d+)[: ](\d+)$/);
    const one = place ? this.place(place[1], +place[2]) : /^\d+$/.test(text) ? this.input(+text) : null;
    return one ? [one] : [...this.key(text), ...this.id(text)];
  }

  /** Return the batches of a transaction's outputs, from the facts of the log. */
  batches(place, first, last) {
    return (this.data.facts?.[place] ?? [])
      .filter(([from, to, witness]) => witness === "log" && from <= last && first <= to && first >= 0);
  }
}

const step = ([, , witness, says, at]) => [witness, says, at];

function index(numbers = []) {
  const found = new Map();
  numbers.forEach((number, row) => {
    if (number === null) return;
    const rows = found.get(number);
    if (rows) rows.push(row); else found.set(number, [row]);
  });
  return found;
}

/** Return a story as a table. */
function told(story) {
  const body = story.steps.map(([witness, says, at]) => element("tr", {},
    element("th", {scope: "row"}, witness),
    element("td", {className: "number"}, at === null || at === undefined ? "" : `${seconds(at)} s`),
    element("td", {}, says)));
  return element("section", {className: "story"}, element("h4", {}, story.title),
    element("table", {}, element("tbody", {}, ...body)));
}

/** Return what is known of a transaction: its inputs, its manifest of outputs, their batches, and errors. */
function detailed(data, facts, at) {
  const all = data.transactions, steps = [];
  if (all.asked[at] !== null) steps.push(["commit", "the client asks to commit", all.asked[at]]);
  steps.push(["outcome", OUTCOMES[all.outcome[at]], all.end[at]]);
  for (const error of all.errors[at] ?? []) steps.push(["error", error]);
  for (const [partition, first, after] of all.sources[at]) {
    steps.push(["inputs", after > first ? `partition ${partition}: offsets ${first} to ${after - 1}`
      : `partition ${partition}: none`]);
  }
  for (const [topic, partition, count, first, last] of all.outputs[at]) {
    const place = `${topic}/${partition}`;
    steps.push(["outputs", `${place}: ${count} records` + (first < 0 ? "" : `, offsets ${first} to ${last}`)]);
    for (const batch of facts.batches(place, first, last)) steps.push(step(batch));
  }
  return told({title: titleOf(data, at), steps});
}

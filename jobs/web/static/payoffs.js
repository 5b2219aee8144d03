// The states of a table of payoffs, from the blocks of a site: each with its payoffs, what can
// happen there and where that leads. Nothing here knows which game it is.
import { block, unplaned } from "./blocks.js";

const EMPTY = new Float64Array();

export class Payoffs {
  constructor(seal, table) {
    Object.assign(this, { seal, table, ...table.site });
    this.decoded = new WeakMap();
  }

  /** The state of a row's key, a list of numbers by field. */
  numbers(key) {
    return this.columns.map(({ stride, room }) => Math.floor(key / stride) % room);
  }

  /** The key of numbers; null where a number has no room. */
  key(numbers) {
    if (numbers.some((number, i) => number < 0 || number >= this.columns[i].room)) return null;
    return numbers.reduce((sum, number, i) => sum + number * this.columns[i].stride, 0);
  }

  /** -> {over, to_act, value, moves: [{action, outcomes: [{…, key}]}]}; null where there is no such state. */
  async row(key) {
    if (key === null) return null;
    this.firsts ??= block(this.seal, "states.bin", 0).then((bytes) => new Float64Array(bytes.buffer));
    const number = last(await this.firsts, key);
    if (number < 0) return null;
    const { patterns, keys, which, payoffs, leads } = await this.group(number);
    const i = last(keys, key);
    if (keys[i] !== key) return null;
    const pattern = patterns[which[i]];
    const value = payoffs.map((of) => of[i]);
    if (this.total !== null) value.push(this.total - value[0]);
    let k = 0;
    const moves = pattern.moves.map((move) => ({ action: move.action, outcomes: move.outcomes.map((one) => ({ ...one, key: leads[i][k++] })) }));
    return { ...pattern, value, moves };
  }

  /** The key of the state that another one's key says too; null where there is none. */
  async same(key) {
    const pairs = new Float64Array(unplaned(await block(this.seal, "aliases.bin", 0), 8));
    const [said, meant] = [pairs.subarray(0, pairs.length / 2), pairs.subarray(pairs.length / 2)];
    const i = key === null ? -1 : last(said, key);
    return said[i] === key ? meant[i] : null;
  }

  /** A block of states, decoded. */
  async group(number) {
    const bytes = await block(this.seal, "states.bin", number + 1);
    if (!this.decoded.has(bytes)) this.decoded.set(bytes, this.decode(bytes));
    return this.decoded.get(bytes);
  }

  decode(bytes) {
    const [said, rows] = new Uint32Array(bytes.buffer, 0, 2);
    const patterns = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + said)));
    const all = new Float64Array(unplaned(bytes.subarray(8 + said), 8));
    const players = this.total === null ? this.table.players : 1;
    const keys = all.subarray(0, rows);
    for (let i = 1; i < rows; i++) keys[i] += keys[i - 1];
    const which = all.subarray(rows, 2 * rows);
    const payoffs = Array.from({ length: players }, (_, p) => all.subarray((2 + p) * rows, (3 + p) * rows));
    const counts = patterns.map(({ moves }) => moves.reduce((sum, move) => sum + move.outcomes.length, 0));
    const leads = Array.from(keys, (_, i) => (counts[which[i]] ? [] : EMPTY));
    let at = (2 + players) * rows;
    for (let slot = 0; at < all.length; slot++) {
      let away = 0;
      for (let i = 0; i < rows; i++) {
        if (counts[which[i]] > slot) leads[i].push(keys[i] + (away += all[at++]));
      }
    }
    return { patterns, keys, which, payoffs, leads };
  }

  /** The answer to numbers, as /api/…/state gives it but for the state's own fields; null where there
   * is no such state. */
  async answer(numbers) {
    const own_key = this.key(numbers);
    const key = (await this.row(own_key)) ? own_key : await this.same(own_key);
    const row = await this.row(key);
    if (!row) return null;
    const { tolerance } = this.table;
    const own = row.to_act === null ? 0 : row.to_act - 1;
    const actions = [];
    for (const { action, outcomes } of row.moves) {
      const found = await Promise.all(outcomes.map(async ({ key, ...one }) => {
        const child = await this.row(key);
        return { ...one, numbers: this.numbers(key), value: child?.value ?? null, over: child?.over ?? false };
      }));
      const known = found.every((one) => one.value);
      const value = known ? row.value.map((_, p) => found.reduce((sum, one) => sum + one.chance * (one.reward[p] + one.value[p]), 0)) : null;
      actions.push({ action, value, ...(found.length === 1 && action !== null ? { next: found[0] } : { outcomes: found }) });
    }
    const said = { numbers: this.numbers(key), over: row.over, to_act: row.to_act, value: row.value, actions: [], outcomes: [], best: null, margin: null, toss_up: false, error: this.table.error_bound, source: "table", held: !row.over };
    if (row.over) return said;
    if (row.to_act === null) return { ...said, outcomes: actions[0].outcomes };
    const known = actions.every((each) => each.value);
    if (!known) return { ...said, actions: actions.map((each) => ({ ...each, value: each.value ?? row.value, best: false, toss_up: false, cost: null })) };
    // Of tied ones the first of the game's order.
    const best = actions.reduce((one, each) => (each.value[own] > one.value[own] + tolerance ? each : one));
    const top = Math.max(...actions.map((each) => each.value[own]));
    const order = [best, ...actions.filter((each) => each !== best).sort((a, b) => b.value[own] - a.value[own])];
    const margin = order.length > 1 ? Math.max(0, order[0].value[own] - order[1].value[own]) : null;
    const toss_up = margin !== null && margin <= tolerance;
    return {
      ...said, best: best.action, margin, toss_up,
      actions: order.map((each) => {
        const level = top - each.value[own] <= tolerance;
        return { ...each, best: each === best, toss_up: toss_up && level, cost: level ? 0 : top - each.value[own] };
      }),
    };
  }

  /** What a cell of a grid shows: {value, best, margin, to_act}; null where there is no such state. */
  async cell(numbers, colour) {
    const key = this.key(numbers);
    if (colour === "best" || colour === "margin") return this.answer(numbers);
    const row = await this.row(key);
    return row && { ...row, best: null };
  }

  /** The numbers of a state drawn by a random function. */
  async drawn(random) {
    await this.row(0);
    const { keys } = await this.group(Math.floor(random() * (await this.firsts).length));
    return this.numbers(keys[Math.floor(random() * keys.length)]);
  }
}

/** Where the last number stands that is not above one, in ascending ones; -1 for none. */
function last(ascending, number) {
  let [low, high] = [0, ascending.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ascending[middle] <= number) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

// The decisions of Press Your Luck, from the blocks of a site: where a state's code stands, as
// docs/reference/table-format.md#decisions says, and what is best along the score of who is up.
import { Refused } from "./api.js";
import { block, unplaned } from "./blocks.js";
import { capital, player } from "./format.js";

const [A, B, C] = [0, 1, 2]; // the players in, in turn order; of two A and C

export class Decisions {
  constructor(seal, table) {
    Object.assign(this, { seal, table, players: table.players, ...table.site });
    this.numbered = new Map();
    this.paid = new Set(this.paid);
  }

  /** Where the code of a state stands: its values, one a column, made canonical; who is up; whether
   * they decide. Null where a value is none of such a state. */
  place(given) {
    const n = this.players;
    const [scores, earned, passed, whammies] = [0, 1, 2, 3].map((k) => given.slice(k * n, (k + 1) * n));
    const out = whammies.map((w) => w >= this.most);
    for (let i = 0; i < n; i++) {
      if (out[i] && (scores[i] || earned[i] || passed[i])) throw new Refused(`whammies: player ${i + 1} is out, and has neither a score nor spins`, 400, "whammies");
    }
    const spins = [...earned, ...passed].reduce((sum, each) => sum + each, 0);
    if (this.merge) whammies.forEach((w, i) => { if (w + spins < this.most) whammies[i] = 0; });
    const values = [...scores, ...earned, ...passed, ...whammies];
    const inside = out.flatMap((gone, i) => (gone ? [] : [i]));
    if (inside.length < 2 || !spins) return { values, over: true };
    if (spins > this.frontier) throw new Refused(`earned, passed: ${spins} spins are left; this table has up to ${this.frontier}`, 400, "earned");
    const [a, b, c] = inside.length === 3 ? inside : [inside[0], null, inside[1]];
    const slots = [a, b, c];
    const up = slots.findIndex((i) => i !== null && earned[i] + passed[i] > 0);
    const own = scores[slots[up]];
    const free = !(this.last_must_play && inside.length > 2 && inside.every((i) => i === slots[up] || scores[i] > own));
    return {
      values, slots, up, spins, to_act: slots[up] + 1, over: false,
      decides: passed[slots[up]] === 0, free, at: slots.map((i) => (i === null ? 0 : scores[i] / this.unit)),
      tier: `spins-${spins}.${whammies.map((w, i) => `whammies_${i + 1}-${w}`).join(".")}`,
      ...this.number(spins, b !== null, slots.flatMap((i) => (i === null ? [0, 0] : [passed[i], earned[i]]))),
    };
  }

  /** Of a configuration (passed, earned of A, B, C): its number, among those in which somebody
   * decides too, and how many there are. */
  number(spins, three, configuration) {
    const key = `${spins}${three}`;
    if (!this.numbered.has(key)) this.numbered.set(key, configurations(spins, three));
    const all = this.numbered.get(key);
    return { ...all.get(configuration.join()), count: all.size };
  }

  /** The codes along the score of who is up: [where these players are, any score of theirs]. */
  async line(place) {
    const [three, n] = [place.slots[B] !== null, this.size];
    const nb = three ? n : 1;
    const together = this.block[three ? 3 : 2] / (nb * n * n);
    const codes = await block(this.seal, `${place.tier}.bin`, Math.floor(place.number / together));
    const first = (place.number % together) * nb * n * n;
    const code = (at) => {
      let found = 0;
      for (let a = 0; a <= at[A]; a++) found ^= codes[first + (at[B] * n + a) * n + at[C]];
      return found;
    };
    return Array.from({ length: n }, (_, score) => code(place.at.map((each, slot) => (slot === place.up ? score : each))));
  }

  async answer(given) {
    const place = this.place(given);
    const said = { numbers: place.values, over: place.over, to_act: place.to_act ?? null, value: [], actions: [], outcomes: [], best: null, margin: null, toss_up: false, error: 0, source: "decisions", held: !place.over, why: [] };
    if (place.over) return said;
    said.value = await this.value(place);
    if (!place.decides || !place.free) return { ...said, best: this.actions[0], actions: [{ action: this.actions[0], best: true, value: null }], why: [place.decides ? "Behind all others they must play." : "A spin that was passed must be played."] };
    const line = await this.line(place);
    const code = line[place.at[place.up]];
    const best = this.actions[code & 15];
    const margin_class = this.classes[code >> 4] || undefined;
    const other = kinds(this.actions).find((each) => each !== kind(best));
    return { ...said, best, margin_class, actions: [{ action: best, best: true, value: null }, { action: other, best: false, value: null }], why: [this.thresholds(place, line)] };
  }

  /** What the state is worth to each player, where that is stored. */
  async value({ tier, at, all, count }) {
    if (!this.paid.has(tier)) return [];
    const row = ((at[B] * this.size + at[A]) * count + all) * this.size + at[C];
    const bytes = await block(this.seal, `${tier}.payoffs.bin`, Math.floor(row / this.rows));
    const payoffs = new Float32Array(unplaned(bytes, 4));
    const first = (row % this.rows) * this.players;
    return [...payoffs.subarray(first, first + this.players)];
  }

  /** Where along their score the best action changes, in a sentence. */
  thresholds(place, line) {
    const runs = [];
    line.forEach((code, score) => {
      const action = this.actions[code & 15];
      if (runs.at(-1)?.action === action) runs.at(-1).last = score;
      else runs.push({ action, first: score, last: score });
    });
    const who = capital(player(place.to_act, this.players));
    if (runs.length === 1) return `${who}: ${runs[0].action} at any score of theirs, all else as here.`;
    const money = (score) => `$${(score * this.unit).toLocaleString("en")}`;
    const said = runs.map(({ action, first, last }, k) => `${action} ${k === 0 ? `up to ${money(last)}` : k === runs.length - 1 ? `from ${money(first)} on` : first === last ? `at ${money(first)}` : `from ${money(first)} to ${money(last)}`}`);
    return `By their score, all else as here: ${said.join(", ")}.`;
  }

  /** What a cell of a grid shows; null where there is no such state. */
  async cell(given) {
    let place;
    try {
      place = this.place(given);
    } catch (error) {
      if (error instanceof Refused) return null;
      throw error;
    }
    if (place.over) return null;
    if (!place.decides || !place.free) return { ...place, value: [], best: this.actions[0] };
    return { ...place, value: [], best: this.actions[(await this.line(place))[place.at[place.up]] & 15] };
  }

  /** The values of a state in which somebody decides, drawn by a random function; where the score of
   * who is up matters, near to where it does. */
  async drawn(random) {
    const below = (n) => Math.floor(random() * n);
    const n = this.players;
    for (;;) {
      const spins = 1 + below(this.frontier);
      const given = Array(4 * n).fill(0);
      for (let i = 0; i < n; i++) given[i] = below(this.size) * this.unit;
      for (let k = 0; k < spins; k++) given[n + below(n)]++;
      for (let i = 0; i < n; i++) given[3 * n + i] = below(this.most);
      const place = this.place(given);
      if (place.over || !place.decides) continue;
      const line = await this.line(place);
      const turns = line.flatMap((code, score) => (score && kind(this.actions[code & 15]) !== kind(this.actions[line[score - 1] & 15]) ? [score] : []));
      if (turns.length) {
        const near = turns[below(turns.length)] + below(7) - 3;
        place.values[place.to_act - 1] = Math.min(Math.max(near, 0), this.size - 1) * this.unit;
      } else if (random() < 0.8) continue;
      if (this.place(place.values).free) return place.values;
    }
  }

  /** The choices of a decision to train with. */
  choices(answer) {
    return kinds(this.actions).map((action) => {
      const best = action === kind(answer.best);
      return { action, best, value: null, cost: best ? 0 : null };
    });
  }
}

const kind = (action) => action.split(" ")[0];
const kinds = (actions) => [...new Set(actions.map(kind))];

/** The configurations of so many spins: the number of each, and among those in which somebody
 * decides. */
function configurations(spins, three) {
  const found = new Map();
  let decided = 0;
  const most = (left) => (three ? left : 0);
  for (let pa = spins; pa >= 0; pa--) for (let ea = spins - pa; ea >= 0; ea--) {
    const left = spins - pa - ea;
    for (let pb = most(left); pb >= 0; pb--) for (let eb = most(left - pb); eb >= 0; eb--) {
      const rest = left - pb - eb;
      for (let pc = rest; pc >= 0; pc--) {
        const each = [pa, ea, pb, eb, pc, rest - pc];
        const up = [A, B, C].find((slot) => each[2 * slot] + each[2 * slot + 1] > 0);
        found.set(each.join(), { all: found.size, number: each[2 * up] === 0 ? decided++ : null });
      }
    }
  }
  return found;
}

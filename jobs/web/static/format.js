// Numbers and names as people read them.

const MINUS = "−";
const whole = new Intl.NumberFormat("en");

/** How this table's payoffs are written: chances as 77.74%, points as 0.3125, dollars as $1,720. */
export class Payoffs {
  constructor(table) {
    this.name = table.payoff_name ?? "payoff";
    this.chance = table.payoff_range
      ? table.payoff_range[0] === 0 && table.payoff_range[1] === 1
      : /chance|probab/.test(this.name);
    this.dollars = /dollars/.test(this.name);
    this.players = table.players;
  }

  /** A payoff: an element that holds the number as the server sent it. */
  show(value) {
    const made = document.createElement("data");
    made.value = String(value);
    made.textContent = this.text(value);
    return made;
  }

  text(value) {
    if (value === null || value === undefined) return "–";
    if (this.dollars) return dollars(value);
    return this.chance ? `${fixed(100 * value, 2)}%` : fixed(value, 4);
  }

  /** A difference, with its sign: of chances in percentage points, +4.71 pp. */
  change(value) {
    if (value === null || value === undefined) return "–";
    const sign = value > 0 ? "+" : value < 0 ? MINUS : "±";
    return sign + this.size(value);
  }

  /** What an edge pays: +4. */
  paid(value) {
    return value ? this.change(value).replace(/\.0+( pp)?$|(\.\d*[1-9])0+( pp)?$/, "$2$1$3") : "0";
  }

  /** How large a difference is; small ones as 1.2e-8. */
  size(value) {
    if (this.dollars && Math.abs(value) >= 0.5) return dollars(Math.abs(value));
    const [size, decimals, unit] = this.chance ? [Math.abs(100 * value), 2, " pp"] : [Math.abs(value), 4, ""];
    const sign = this.dollars ? "$" : "";
    if (size === 0) return `${sign}0${unit}`;
    return sign + (size >= 0.5 * 10 ** -decimals ? size.toFixed(decimals) : size.toExponential(1)) + unit;
  }
}

/** A bound in two digits, rounded up: 3.0e-8. */
export function bound(error) {
  const [digits, power] = error.toExponential(9).split("e");
  return Number(`${Math.ceil(10 * digits - 1e-8) / 10}e${power}`).toExponential(1);
}

/** To the dollar: $1,720. */
function dollars(value) {
  return `${value <= -0.5 ? MINUS : ""}$${whole.format(Math.round(Math.abs(value)))}`;
}

function fixed(value, decimals) {
  const text = Math.abs(value).toFixed(decimals);
  return value < 0 && Number(text) !== 0 ? MINUS + text : text;
}

/** A chance, of anything: 33.3%. */
export function percent(chance) {
  const size = 100 * chance;
  if (size === 0 || size >= 0.05) return `${size.toFixed(1)}%`;
  return `${size.toPrecision(1)}%`;
}

export function count(number) {
  if (number === null || number === undefined) return "";
  if (number < 1e6) return whole.format(number);
  return number < 999.5e6 ? `${three(number / 1e6)} million` : `${three(number / 1e9)} billion`;
}

export function size(bytes) {
  for (const [unit, word] of [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]) {
    if (bytes >= 0.9995 * unit) return `${three(bytes / unit)} ${word}`;
  }
  return `${bytes} bytes`;
}

/** Three digits, or all of those before the point. */
function three(number) {
  return number < 999.5 ? number.toPrecision(3) : whole.format(number);
}

/** What people call the game of a table. */
export function gameTitle(table) {
  const words = table.game_title || table.game.replaceAll("-", " ");
  return capital(words);
}

/** The title of a table's board, without the game's name before it. */
export function boardTitle(table) {
  const [game, title] = [gameTitle(table), table.title || table.board];
  return capital(title.startsWith(`${game}, `) ? title.slice(game.length + 2) : title);
}

export function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export function player(number, players) {
  return players === 1 ? "you" : `player ${number}`;
}

/** Options that a board was solved with: score_unit=500, frontier=2. */
export function options(given) {
  return Object.entries(given ?? {}).map(([name, value]) => `${name}=${value}`).join(", ");
}

// The columns of a table's states, and the parts of a state that they say.
import * as address from "./address.js";
import { player } from "./format.js";

/** The columns that a slider or an axis can have. */
export function columns(table) {
  return table.fields.filter((field) => field.kind !== "set").flatMap((field) => {
    const length = field.length ?? 1;
    return Array.from({ length }, (_, i) => ({
      field, place: i, length, name: length === 1 ? field.name : `${field.name}_${i + 1}`,
      label: length === 1 ? field.label ?? field.name : `${field.label ?? field.name}, ${field.players ? player(i + 1, length) : i + 1}`,
    }));
  });
}

export function columnOf(table, name) {
  return columns(table).find((column) => column.name === name);
}

/** The part of a state that a column says. */
export function part(base, column) {
  const text = base[column.name] ?? base[column.field.name];
  if (text === undefined) return String(column.field.default ?? column.field.min ?? 0).split(",")[column.place] ?? "0";
  return column.length === 1 || base[column.name] !== undefined ? text : text.split(",")[column.place] ?? "";
}

/** A state with the number of one column changed. */
export function changed(table, base, column, value) {
  const all = columns(table).filter((each) => each.field === column.field);
  const text = all.map((each) => (each.name === column.name ? value : part(base, each))).join(",");
  const rest = { ...base };
  all.forEach((each) => delete rest[each.name]);
  return { ...rest, [column.field.name]: text };
}

/** The state of a cell, as an address has it: a state with the numbers of two columns in their
 * places. */
export function cellState(table, base, ...numbers) {
  return address.plain(numbers.reduce((state, [name, value]) => {
    const column = columnOf(table, name);
    return column ? changed(table, state, column, value) : state;
  }, base));
}

// Colours for numbers: viridis (even steps of lightness, so it reads in grey and to colour-blind
// people), and one with a middle for differences (blue, pale, orange).

const VIRIDIS = ["440154", "482878", "3e4a89", "31688e", "26828e", "1f9e89", "35b779", "6ece58", "b5de2b", "fde725"].map(parts);
const APART = ["9a3b00", "d97a2b", "f2c79a", "f3f1ec", "a9c8ec", "4a86cf", "0b4a94"].map(parts);

function parts(hex) {
  return [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16));
}

function along(stops, share) {
  const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(at), stops.length - 2);
  return stops[low].map((part, i) => Math.round(part + (at - low) * (stops[low + 1][i] - part)));
}

/** share 0 to 1 -> [r, g, b]. */
export const viridis = (share) => along(VIRIDIS, share);

/** share 0 (less, orange) to 1 (more, blue), 0.5 none -> [r, g, b]. */
export const apart = (share) => along(APART, share);

/** The colour of the i-th of n names: far apart in lightness. */
export const named = (i, n) => along(VIRIDIS, n < 2 ? 0.5 : 0.08 + (0.88 * i) / (n - 1));

export const css = ([r, g, b]) => `rgb(${r} ${g} ${b})`;

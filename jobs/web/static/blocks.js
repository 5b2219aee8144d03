// Files of blocks, as `jobs.web.site` writes them: a block is read by its range, or the whole file
// where the host gives no ranges; held to its digest; unpacked.
import { Refused } from "./api.js";

const NEAR = 256; // places of blocks that are read together
const [FILES, BLOCKS] = [8, 200]; // whole files and blocks that are kept
const wholes = new Map(), kept = new Map();

/** A block of a file, as it was packed. seal: what the table is, which the digests are of too. */
export function block(seal, name, number) {
  return keep(kept, BLOCKS, `${name}/${number}`, () => read(seal, name, number));
}

async function read(seal, name, number) {
  const first = number - (number % NEAR);
  const places = new DataView(await places_of(name, first));
  const at = 4 * (number - first);
  if (at + 8 > places.byteLength) throw broken(name, number);
  const content = new Uint8Array(await part(name, places.getUint32(at, true), places.getUint32(at + 4, true)));
  const text = new TextEncoder().encode(`${seal}/${name}/${number}\n`);
  const sealed = new Uint8Array(text.length + Math.max(0, content.length - 8));
  sealed.set(text);
  sealed.set(content.subarray(8), text.length);
  if (!globalThis.DecompressionStream) throw new Refused("This browser is too old for this page; it needs one of 2023 or later.", 0);
  if (!crypto.subtle) throw new Refused("A browser checks what it reads only at an https:// address, or at one of this machine: http://localhost.", 0);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", sealed));
  if (content.length < 9 || content.subarray(0, 8).some((byte, i) => byte !== digest[i])) throw broken(name, number);
  const stream = new Blob([content.subarray(8)]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function broken(name, number) {
  return new Refused(`data/${name}: block ${number} is not what was published; nothing is answered from it. Reload the page; if it stays so, publish the site again.`, 409);
}

/** Where blocks begin from the first on, as many as are read together. */
function places_of(name, first) {
  return keep(kept, BLOCKS, `${name} ${first}`, () => part(name, 4 * first, 4 * (first + NEAR + 1)));
}

/** Bytes of a file from one place to another, or to its end. */
async function part(name, from, to) {
  const whole = wholes.get(name);
  if (whole) return (await whole).slice(from, to);
  const response = await got(name, { headers: { Range: `bytes=${from}-${to - 1}` } });
  if (response.status === 206) return response.arrayBuffer();
  return (await keep(wholes, FILES, name, () => response.arrayBuffer())).slice(from, to);
}

async function got(name, more) {
  let response;
  try {
    response = await fetch(`data/${name}`, more);
  } catch {
    throw new Refused("What this state needs was not loaded before, and there is no connection.", 0);
  }
  if (!response.ok) throw new Refused(`data/${name} is not there (${response.status}): the site is not whole.`, 404);
  return response;
}

/** What a map keeps by a name, the newest of them; made if it is not there. */
function keep(map, most, name, make) {
  if (!map.has(name)) {
    const made = make();
    map.set(name, made);
    made.catch(() => map.delete(name));
    if (map.size > most) map.delete(map.keys().next().value);
  }
  return map.get(name);
}

/** The bytes of numbers of so many bytes each, which stand in planes, the lowest first. */
export function unplaned(bytes, size) {
  const count = bytes.length / size;
  const found = new Uint8Array(bytes.length);
  for (let plane = 0; plane < size; plane++) {
    for (let i = 0; i < count; i++) found[size * i + plane] = bytes[plane * count + i];
  }
  return found.buffer;
}

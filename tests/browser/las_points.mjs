import { readFileSync } from 'node:fs';

/** x, y, z and label of every point of a LAS file, read without the program. */
export function lasPoints(path) {
  const bytes = readFileSync(path), first = bytes.readUInt32LE(96), row = bytes.readUInt16LE(105), count = Number(bytes.readBigUInt64LE(247));
  const scale = [131, 139, 147].map((at) => bytes.readDoubleLE(at)), offset = [155, 163, 171].map((at) => bytes.readDoubleLE(at));
  return Array.from({ length: count }, (_, i) => [0, 1, 2].map((a) => bytes.readInt32LE(first + i * row + 4 * a) * scale[a] + offset[a]));
}

// What the tools of Cesium made of the tileset: one archive with everything that it names.
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { check, finish, test } from '../browser/check.mjs';

const { SCRATCH } = process.env, tiles = process.argv[2];
await test('3d-tiles-tools of Cesium read and pack the tileset in ' + tiles, () => {
  const listed = execFileSync('python3', ['-m', 'zipfile', '-l', `${SCRATCH}/${tiles}.3tz`]).toString();
  check(listed.includes('tileset.json'), 'tileset.json is in the package');
  for (const name of readdirSync(`${SCRATCH}/${tiles}/content`)) check(listed.includes(`content/${name}`), `${name} is in the package`);
});
finish();

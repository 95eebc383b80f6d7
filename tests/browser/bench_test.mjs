// Prints how long a frame takes by several ways of drawing the same discs, and how long choosing what to draw takes.
// No check fails by time: TESTS=bench tests/browser/run PROGRAM. Without a GPU this measures SwiftShader.
import { SCRATCH, launch, openPage, serve, settle, view } from './driver.mjs';

const server = await view(`${SCRATCH}/city`), browser = await launch(), { page } = await openPage(browser);
await page.setViewportSize({ width: 1280 + 336, height: 720 });
await page.goto(server.url);
await settle(page);
const rows = await page.evaluate(async () => {
  const app = document.querySelector('script').src.replace(/main\.js$/, '');
  const { Renderer, program } = await import(`${app}renderer.js`), { DISC_FRAGMENT, DISC_VERTEX } = await import(`${app}shaders.js`);
  const canvas = document.createElement('canvas');
  Object.assign(canvas, { width: 1280, height: 720 });
  const renderer = new Renderer(canvas), { gl } = renderer;

  // A street of 80 m: ground, and a wall on both sides, 60 m high in the distance.
  const discs = (count) => {
    const wide = Math.ceil(count / 16) * 16, half = Math.ceil(count / 32) * 16, words = new Uint32Array(4 * wide + 3 * half);
    let seed = 1;
    const draw = () => { seed = Math.imul(seed, 1664525) + 1013904223 >>> 0; return seed / 2 ** 32; };
    const put = (column, i, value) => { const at = 2 * (4 * wide + column * half) + i; words[at >> 1] |= value << 16 * (at & 1); };
    for (let i = 0; i < count; i++) {
      const wall = i % 2, x = 80 * draw(), y = wall ? (i % 4 === 1 ? 4 : 24) : 4 + 20 * draw(), z = wall ? 10 * draw() : 0;
      [x, y, z].forEach((v, a) => { words[a * wide + i] = Math.round(v * 8192) & 0xffffff; });
      words[3 * wide + i] = wall ? 32767 << 16 : 0;  // along y, or up
      put(0, i, Math.round(8192 * 40 / Math.sqrt(count)));  // they cover the surfaces about once, however many there are
      put(1, i, i % 7);
      put(2, i, i % 65536);
    }
    return words;
  };
  const corners = (list) => `vec2[${list.length}](${list.map(([x, y]) => `vec2(${x.toFixed(6)}, ${y.toFixed(6)})`).join(', ')})`;
  const hexagon = Array.from({ length: 6 }, (_, i) => [Math.cos(i * Math.PI / 3), Math.sin(i * Math.PI / 3)]);
  const around = (list) => DISC_VERTEX.replace('gl_VertexID / 3', `gl_VertexID / ${list.length}`).replace('gl_VertexID - 3 * disc', `gl_VertexID - ${list.length} * disc`)
    .replace(/onDisc = vertex == 0[^;]*;/, `onDisc = ${corners(list)}[vertex];`);
  const square = [[-1, -1], [1, -1], [1, 1], [-1, -1], [1, 1], [-1, 1]];
  const ways = {
    'a triangle around each disc (the viewer)': { vertex: DISC_VERTEX, draw: (first, count) => gl.drawArrays(gl.TRIANGLES, 3 * first, 3 * count) },
    'two triangles': { vertex: around(square), draw: (first, count) => gl.drawArrays(gl.TRIANGLES, 6 * first, 6 * count) },
    'a hexagon, nothing discarded': { vertex: around([0, 1, 2, 0, 2, 3, 0, 3, 4, 0, 4, 5].map((k) => hexagon[k])),
      fragment: DISC_FRAGMENT.replace('if (dot(onDisc, onDisc) >= 1.0) discard;', ''), draw: (first, count) => gl.drawArrays(gl.TRIANGLES, 12 * first, 12 * count) },
    'an instance for each disc': { vertex: around(square).replace(/int disc = [^;]*;/, 'int disc = gl_InstanceID, vertex = gl_VertexID;'), most: 100_000,
      draw: (first, count) => gl.drawArraysInstanced(gl.TRIANGLES, 0, 6, count) },
    'points with a plane in each pixel': {
      vertex: DISC_VERTEX.replace('out vec3 fromEye; out vec2 onDisc;', 'vec3 fromEye; vec2 onDisc; flat out vec3 middle; flat out float size;')
        .replace(/int disc = [^;]*;/, 'int disc = gl_VertexID, vertex = 0;')
        .replace('gl_Position = project(fromEye, behind);', 'middle = centre; size = radius; gl_Position = project(centre, behind); gl_PointSize = min(1000.0, 2.0 * radius * projection.x * 640.0 / max(0.1, gl_Position.w));'),
      fragment: DISC_FRAGMENT.replace('in vec3 fromEye; in vec2 onDisc;', 'flat in vec3 middle; flat in float size; uniform mat3 cameraFromWorld; uniform vec4 projection;')
        .replace('if (dot(onDisc, onDisc) >= 1.0) discard;', `vec2 screen = (2.0 * gl_FragCoord.xy / vec2(1280.0, 720.0) - 1.0) / projection.xy;
          vec3 way = transpose(cameraFromWorld) * vec3(screen, -1.0);
          vec3 fromEye = way * (dot(middle, normal) / dot(way, normal));
          if (distance(fromEye, middle) >= size) discard;
          float ahead = -(cameraFromWorld * fromEye).z;
          gl_FragDepth = 0.5 + 0.5 * (ahead * projection.z + projection.w) / ahead;`),
      draw: (first, count) => gl.drawArrays(gl.POINTS, first, count) },
  };
  const camera = { eye: [-2, 14, 2], yaw: 0, pitch: 0, fov: 1.3, span: 0 }, pixel = new Uint8Array(4), rows = [];
  for (const count of [100_000, 1_000_000]) {
    const texture = renderer.upload(discs(count), count), piece = { first: 0, count, place: 0, min: [0, 0, 0], max: [80, 28, 10] };
    const parts = [{ cube: { texture, unit: 1 / 8192, corner: [0, 0, 0] }, pieces: [piece], count, below: null, error: 0 }];
    for (const [name, way] of Object.entries(ways)) {
      if (count > (way.most ?? Infinity)) continue;
      renderer.discs = program(gl, way.vertex, way.fragment ?? DISC_FRAGMENT);
      renderer.drawRanges = (list, eye) => list.reduce((sum, r) => { renderer.bind(r.cube, eye); way.draw(r.first, r.count); return sum + r.count; }, 0);
      const times = [];
      for (let i = 0; i < 4; i++) {
        const begin = performance.now();
        renderer.draw(camera, [{ region: { x: 0, width: 1280, height: 720 }, shown: { city: parts, brightness: 1, tinted: [], measured: [], scans: [], lines: new Float32Array() } }]);
        gl.readPixels(640, 100, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, pixel);  // waits until all is drawn
        times.push(performance.now() - begin);
      }
      const error = gl.getError(), [best] = times.slice(1).sort((a, b) => a - b);
      rows.push(`${String(count).padStart(9)} discs, 1280 x 720, ${name.padEnd(42)} ${best.toFixed(0).padStart(6)} ms${error ? ` (error ${error})` : ''}, pixel ${[...pixel.slice(0, 3)]}`);
    }
    gl.deleteTexture(texture.texture);
  }
  const info = gl.getExtension('WEBGL_debug_renderer_info');
  return [info ? gl.getParameter(info.UNMASKED_RENDERER_WEBGL) : 'unknown renderer', ...rows];
});
for (const row of rows) console.log(row);
await page.close();
await server.end();

if (process.env.MADE_UP_CITY) {
  const large = await serve(process.env.MADE_UP_CITY, '104', process.env.LARGE_SPLATS ?? '1000', `${SCRATCH}/made_up_levels`), { page: p } = await openPage(browser);
  await p.goto(large.url);
  await settle(p);
  for (const [name, eye, pitch] of [['above all of it', [3200, 3200, 5000], -1.5], ['above some streets', [3200, 3200, 300], -0.8], ['in a street', [3210, 3210, 2], 0]]) {
    const row = await p.evaluate(async ([at, down]) => {
      const { camera, scene } = citysplat, size = { width: 1280, height: 720 }, times = [];
      Object.assign(camera, { eye: at, pitch: down, yaw: 0.3 });
      scene.moved();
      for (let i = 0; i < 3000 && !scene.select(camera, size).settled; i++) await new Promise((resolve) => setTimeout(resolve, 1));
      let chosen;
      for (let i = 0; i < 50; i++) { const begin = performance.now(); chosen = scene.select(camera, size); times.push(performance.now() - begin); }
      times.sort((a, b) => a - b);
      return `${times[25].toFixed(2)} ms (at most ${times[49].toFixed(2)}): ${chosen.parts.length} parts, ${chosen.discs} discs, ${scene.cubes.size} cubes known`;
    }, [eye, pitch]);
    console.log(`choosing, ${name.padEnd(18)} of 10 000 tiles: ${row}`);
  }
  await large.end();
}
await browser.close();

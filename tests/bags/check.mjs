// Holds a bag against the PLY files of the same run: node check.mjs BAG FIRING WORLD
// BAG is a directory of simulate --format rosbag2, FIRING and WORLD those of --format ply in these two frames.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { open, readFile } from "node:fs/promises";

const require = createRequire(`${process.env.MODULES}/node_modules/`);
const { McapIndexedReader, McapStreamReader } = require("@mcap/core");
const { parse } = require("@foxglove/rosmsg");
const { MessageReader } = require("@foxglove/rosmsg2-serialization");
const fzstd = require("fzstd");

const [bag, firing, world] = process.argv.slice(2);
const decompressHandlers = { zstd: (bytes, size) => fzstd.decompress(bytes, new Uint8Array(Number(size))) };

/** A PLY file of simulate: columns by name. */
async function readPly(path) {
  const bytes = await readFile(path);
  const end = bytes.indexOf("end_header\n") + "end_header\n".length;
  const sizes = { uchar: 1, ushort: 2, uint: 4, int: 4, float: 4, double: 8 };
  const getters = { uchar: "getUint8", ushort: "getUint16", uint: "getUint32", int: "getInt32", float: "getFloat32",
                    double: "getFloat64" };
  let count = 0, stride = 0;
  const columns = [];
  for (const line of bytes.subarray(0, end).toString("latin1").split("\n")) {
    const words = line.split(" ");
    if (words[0] === "element") count = Number(words[2]);
    if (words[0] === "property") columns.push({ name: words[2], type: words[1], at: stride }), (stride += sizes[words[1]]);
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset + end);
  const table = { count };
  for (const { name, type, at } of columns)
    table[name] = Array.from({ length: count }, (_, i) => view[getters[type]](i * stride + at, true));
  return table;
}

/** The points of a PointCloud2 as columns. */
function cloudColumns(cloud) {
  const getters = { 1: "getInt8", 2: "getUint8", 3: "getInt16", 4: "getUint16", 5: "getInt32", 6: "getUint32",
                    7: "getFloat32", 8: "getFloat64" };
  const view = new DataView(cloud.data.buffer, cloud.data.byteOffset, cloud.data.byteLength);
  assert.equal(cloud.height, 1);
  assert.equal(cloud.is_dense, true);
  assert.equal(cloud.is_bigendian, false);
  assert.equal(cloud.row_step, cloud.width * cloud.point_step);
  assert.equal(cloud.data.length, cloud.row_step);
  const table = { count: cloud.width };
  for (const { name, offset, datatype, count } of cloud.fields) {
    assert.equal(count, 1);
    table[name] = Array.from({ length: cloud.width },
                             (_, i) => view[getters[datatype]](i * cloud.point_step + offset, true));
  }
  return table;
}

const nanoseconds = (t) => BigInt(t.sec) * 1000000000n + BigInt(t.nanosec ?? t.nsec);

// What is in the bag.
const file = await open(`${bag}/bag_0.mcap`);
const size = BigInt((await file.stat()).size);
const readable = {
  size: async () => size,
  read: async (offset, length) => {
    const buffer = new Uint8Array(Number(length));
    await file.read(buffer, 0, buffer.length, Number(offset));
    return buffer;
  },
};
const reader = await McapIndexedReader.Initialize({ readable, decompressHandlers });
assert.equal(reader.header.profile, "ros2");
const decoders = new Map();
const messages = new Map();
let lastLog = 0n, count = 0n;
for await (const message of reader.readMessages()) {
  const channel = reader.channelsById.get(message.channelId);
  const schema = reader.schemasById.get(channel.schemaId);
  assert.equal(schema.encoding, "ros2msg");
  assert.equal(channel.messageEncoding, "cdr");
  if (!decoders.has(schema.id))
    decoders.set(schema.id, new MessageReader(parse(new TextDecoder().decode(schema.data), { ros2: true })));
  const value = decoders.get(schema.id).readMessage(message.data);
  if (!messages.has(channel.topic)) messages.set(channel.topic, { type: schema.name, list: [] });
  messages.get(channel.topic).list.push({ log: message.logTime, value });
  assert.ok(message.logTime >= lastLog, "log times ascend");
  lastLog = message.logTime;
  ++count;
}
assert.equal(reader.statistics.messageCount, count);
console.log(`ok     ${count} messages on ${messages.size} topics decode`);

// The whole file from its beginning, with the checksums of the chunks.
const stream = new McapStreamReader({ decompressHandlers, validateCrcs: true });
stream.append(await readFile(`${bag}/bag_0.mcap`));
let streamed = 0n;
for (let record; (record = stream.nextRecord()); ) if (record.type === "Message") ++streamed;
assert.ok(stream.done());
assert.equal(streamed, count);
console.log("ok     the same messages are read from the beginning, and all checksums are right");

const yaml = await readFile(`${bag}/metadata.yaml`, "utf8");
assert.match(yaml, /^ {2}version: 5$/m);
assert.match(yaml, new RegExp(`^  message_count: ${count}$`, "m"));
for (const [topic, { type, list }] of messages)
  assert.match(yaml, new RegExp(`name: ${topic}\\n +type: ${type}\\n[^]*?\\n +message_count: ${list.length}\\n`));
console.log("ok     metadata.yaml names every topic, its type and how many messages it has");

// Frames: world → map → base_link → sensor.
const rotate = ({ x, y, z, w }, v) => {
  const t = [2 * (y * v[2] - z * v[1]), 2 * (z * v[0] - x * v[2]), 2 * (x * v[1] - y * v[0])];
  return [v[0] + w * t[0] + y * t[2] - z * t[1], v[1] + w * t[1] + z * t[0] - x * t[2],
          v[2] + w * t[2] + x * t[1] - y * t[0]];
};
const apply = ({ translation: t, rotation }, v) => {
  const r = rotate(rotation, v);
  return [r[0] + t.x, r[1] + t.y, r[2] + t.z];
};
const fixed = new Map(messages.get("/tf_static").list[0].value.transforms.map((t) => [t.child_frame_id, t]));
assert.equal(fixed.get("map").header.frame_id, "world");
const moving = messages.get("/tf").list.map((m) => m.value.transforms[0]);
for (const t of moving) assert.deepEqual([t.header.frame_id, t.child_frame_id], ["map", "base_link"]);
const stamps = moving.map((t) => nanoseconds(t.header.stamp));
stamps.forEach((s, i) => assert.ok(i === 0 || s > stamps[i - 1]));
/** As tf2 does it: linear in place, spherical in rotation. */
function baseAt(ns) {
  let i = 0;
  while (i + 2 < stamps.length && stamps[i + 1] <= ns) ++i;
  assert.ok(ns >= stamps[i] && ns <= stamps[i + 1], "tf covers the time of the point");
  const s = Number(ns - stamps[i]) / Number(stamps[i + 1] - stamps[i]);
  const a = moving[i].transform, b = moving[i + 1].transform;
  const mix = (p, q, wa, wb) => Object.fromEntries(Object.keys(p).map((k) => [k, wa * p[k] + wb * q[k]]));
  let qb = b.rotation;
  let dot = Object.keys(qb).reduce((sum, k) => sum + a.rotation[k] * qb[k], 0);
  if (dot < 0) (qb = mix(qb, qb, -1, 0)), (dot = -dot);
  const angle = Math.acos(Math.min(1, dot));
  const weights = angle < 1e-6 ? [1 - s, s] : [Math.sin((1 - s) * angle) / Math.sin(angle), Math.sin(s * angle) / Math.sin(angle)];
  return { translation: mix(a.translation, b.translation, 1 - s, s), rotation: mix(a.rotation, qb, ...weights) };
}

// Which column of a message is which of the PLY file, and how it is made of it.
const f32 = Math.fround;
const brightness = (p, i) => f32(f32(p.intensity[i]) * f32(1 / 257));
const byte = (p, i) => Math.floor((p.intensity[i] + 128) / 257);
const ns = (p, i) => Math.floor(p.time_offset[i] * 1e9 + 0.5);
const xyz = { x: (p, i) => f32(p.x[i]), y: (p, i) => f32(p.y[i]), z: (p, i) => f32(p.z[i]) };
const velodyne = { ...xyz, intensity: brightness, ring: (p, i) => p.beam[i], time: (p, i) => p.time_offset[i] };
const ouster = { ...xyz, intensity: (p, i) => p.intensity[i], t: ns, reflectivity: byte, ring: (p, i) => p.beam[i],
                 range: (p, i) => Math.floor(p.range[i] * 1000 + 0.5) };
const kinds = {
  velodyne, os_1: ouster, old_ouster: ouster,
  autoware: { ...xyz, intensity: byte, channel: (p, i) => p.beam[i], distance: (p, i) => p.range[i], time_stamp: ns },
  avia: { ...xyz, reflectivity: byte, line: (p, i) => p.beam[i], offset_time: ns },
  everything: { ...velodyne, label: (p, i) => p.label[i], nx: (p, i) => p.nx[i], status: (p, i) => p.status[i],
                gps_time: (p, i) => p.gps_time[i], splat_low: (p, i) => p.splat_low[i],
                return_number: (p, i) => p.return_number[i] },
};
const folders = { velodyne: "velodyne", os_1: "os-1", old_ouster: "old-ouster", autoware: "autoware", avia: "avia",
                  everything: "everything" };
const times = { velodyne: (t) => t.time.map((s) => Math.round(s * 1e9)), os_1: (t) => t.t, old_ouster: (t) => t.t,
                autoware: (t) => t.time_stamp, avia: (t) => t.offset_time,
                everything: (t) => t.time.map((s) => Math.round(s * 1e9)) };

for (const [name, columns] of Object.entries(kinds)) {
  const { type, list } = messages.get(`/${name}/points`);
  assert.equal(type, name === "avia" ? "livox_ros_driver2/msg/CustomMsg" : "sensor_msgs/msg/PointCloud2");
  let points = 0, farthest = 0;
  for (const [scan, { log, value }] of list.entries()) {
    assert.equal(value.header.frame_id, name);
    const number = String(scan).padStart(6, "0");
    const ply = await readPly(`${firing}/${folders[name]}/scans/${number}.ply`);
    const placed = await readPly(`${world}/${folders[name]}/scans/${number}.ply`);
    let table;
    if (name === "avia") {
      table = { count: value.point_num };
      assert.equal(value.points.length, value.point_num);
      for (const key of ["offset_time", "x", "y", "z", "reflectivity", "tag", "line"])
        table[key] = value.points.map((p) => p[key]);
      assert.equal(value.timebase, nanoseconds(value.header.stamp));
      for (const tag of table.tag) assert.equal(tag & 0x30, 0x10);
    } else {
      table = cloudColumns(value);
    }
    assert.equal(table.count, ply.count);
    // A bag has the two returns of a pulse one behind the other, a file all first ones before.
    const order = Array.from({ length: ply.count }, (_, i) => i);
    if (ply.return_number) order.sort((a, b) => ply.ray[a] - ply.ray[b] || a - b);
    for (const [column, made] of Object.entries(columns))
      for (let i = 0; i < table.count; ++i)
        assert.ok(Object.is(table[column][i], made(ply, order[i])) || table[column][i] === made(ply, order[i]),
                  `${name}, scan ${scan}, point ${i}, ${column}: ${table[column][i]}, expected ${made(ply, order[i])}`);
    const offsets = times[name](table), stamp = nanoseconds(value.header.stamp);
    offsets.forEach((t, i) => assert.ok(t >= 0 && (i === 0 || t >= offsets[i - 1]), "times ascend"));
    assert.ok(stamp + BigInt(offsets.at(-1)) <= log, "logged when the sweep is over");
    for (let i = 0; i < table.count; i += 7) {
      const base = baseAt(stamp + BigInt(offsets[i]));
      let p = apply(fixed.get(name).transform, [table.x[i], table.y[i], table.z[i]]);
      p = apply(fixed.get("map").transform, apply(base, p));
      const at = order[i];
      farthest = Math.max(farthest, Math.hypot(p[0] - placed.x[at], p[1] - placed.y[at], p[2] - placed.z[at]));
    }
    points += table.count;
  }
  assert.ok(points > 1000);
  assert.ok(farthest < 1e-3, `${name}: tf puts a point ${farthest} m from where it is`);
  console.log(`ok     ${name}: ${points} points of ${list.length} scans are those of the PLY files; tf places them within ` +
              `${(farthest * 1e6).toFixed(0)} µm`);
}

// Autoware compares all of this.
const cloud = messages.get("/autoware/points").list[0].value;
assert.deepEqual(cloud.fields.map((f) => [f.name, f.offset, f.datatype, f.count]),
                 [["x", 0, 7, 1], ["y", 4, 7, 1], ["z", 8, 7, 1], ["intensity", 12, 2, 1], ["return_type", 13, 2, 1],
                  ["channel", 14, 4, 1], ["azimuth", 16, 7, 1], ["elevation", 20, 7, 1], ["distance", 24, 7, 1],
                  ["time_stamp", 28, 6, 1]]);
assert.equal(cloud.point_step, 32);
const points = cloudColumns(cloud);
const turn = 2 * Math.PI;
for (let i = 0; i < points.count; ++i) {
  const { x, y, z, azimuth, elevation, distance, return_type } = points;
  const azimuthError = Math.abs(((Math.atan2(y[i], x[i]) - azimuth[i]) % turn + 1.5 * turn) % turn - turn / 2);
  assert.ok(azimuthError < 1e-6 && azimuth[i] >= 0 && azimuth[i] <= turn);
  assert.ok(Math.abs(Math.atan2(z[i], Math.hypot(x[i], y[i])) - elevation[i]) < 1e-6);
  assert.ok(Math.abs(Math.hypot(x[i], y[i], z[i]) - distance[i]) < 1e-4);
  assert.ok([3, 4, 5, 6, 7].includes(return_type[i]));
}
console.log("ok     Autoware's ten fields are where it wants them, and mean what it means by them");

const odometry = messages.get("/odom").list;
assert.equal(odometry.length, moving.length);
odometry.forEach(({ value }, i) => {
  assert.deepEqual(value.pose.pose.position, moving[i].transform.translation);
  assert.deepEqual(value.pose.pose.orientation, moving[i].transform.rotation);
});
console.log("ok     odometry and tf are the same poses");

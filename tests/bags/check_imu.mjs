// The IMU of a bag of simulate --smooth: node check_imu.mjs BAG
// Its readings, integrated from the first pose on, must come to where tf is at the end.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFile } from "node:fs/promises";

const require = createRequire(`${process.env.MODULES}/node_modules/`);
const { McapStreamReader } = require("@mcap/core");
const { parse } = require("@foxglove/rosmsg");
const { MessageReader } = require("@foxglove/rosmsg2-serialization");

const stream = new McapStreamReader({ validateCrcs: true });
stream.append(await readFile(`${process.argv[2]}/bag_0.mcap`));
const schemas = new Map(), channels = new Map(), messages = new Map();
for (let record; (record = stream.nextRecord()); ) {
  if (record.type === "Schema")
    schemas.set(record.id, new MessageReader(parse(new TextDecoder().decode(record.data), { ros2: true })));
  if (record.type === "Channel") channels.set(record.id, record);
  if (record.type !== "Message") continue;
  const channel = channels.get(record.channelId);
  if (!messages.has(channel.topic)) messages.set(channel.topic, []);
  messages.get(channel.topic).push(schemas.get(channel.schemaId).readMessage(record.data));
}
const seconds = ({ sec, nanosec }) => sec + nanosec * 1e-9;
const imu = messages.get("/imu/data"), odometry = messages.get("/odom");
const last = messages.get("/vlp_16/points").at(-1);
assert.ok(seconds(imu.at(-1).header.stamp) >= seconds(last.header.stamp) + 0.0999, "readings cover the last sweep");

const vector = (v) => [v.x, v.y, v.z];
const add = (a, b, s = 1) => a.map((v, i) => v + s * b[i]);
const multiply = (a, b) => ({ x: a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y, y: a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x,
                              z: a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w, w: a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z });
const rotate = (q, [x, y, z]) => {
  const r = multiply(multiply(q, { x, y, z, w: 0 }), { x: -q.x, y: -q.y, z: -q.z, w: q.w });
  return [r.x, r.y, r.z];
};
const first = odometry.findIndex((o) => seconds(o.header.stamp) >= seconds(imu[0].header.stamp) - 1e-9);
let { position, orientation: q } = odometry[first].pose.pose;
let p = vector(position), v = rotate(q, vector(odometry[first].twist.twist.linear));
assert.ok(Math.abs(seconds(odometry[first].header.stamp) - seconds(imu[0].header.stamp)) < 1e-6);
let farthest = 0, poses = 0;
for (let i = 0; i + 1 < imu.length; ++i) {
  const dt = seconds(imu[i + 1].header.stamp) - seconds(imu[i].header.stamp);
  assert.ok(Math.abs(dt - 0.005) < 1e-6, "200 readings a second");
  const turn = add(vector(imu[i].angular_velocity), vector(imu[i + 1].angular_velocity)).map((x) => (x * dt) / 2);
  const angle = Math.hypot(...turn), s = angle > 1e-12 ? Math.sin(angle / 2) / angle : 0.5;
  const next = multiply(q, { x: turn[0] * s, y: turn[1] * s, z: turn[2] * s, w: Math.cos(angle / 2) });
  const force = add(rotate(q, vector(imu[i].linear_acceleration)), rotate(next, vector(imu[i + 1].linear_acceleration)));
  const a = add(force.map((x) => x / 2), [0, 0, -9.80665]);
  p = add(add(p, v, dt), a, (dt * dt) / 2);
  v = add(v, a, dt);
  q = next;
  // Where the odometry is then: on the line between two of its poses, which are close to each other.
  const t = seconds(imu[i + 1].header.stamp), k = odometry.findIndex((o) => seconds(o.header.stamp) > t);
  if (k < 1) continue;
  const before = odometry[k - 1], after = odometry[k];
  const share = (t - seconds(before.header.stamp)) / (seconds(after.header.stamp) - seconds(before.header.stamp));
  const from = vector(before.pose.pose.position), way = add(vector(after.pose.pose.position), from, -1);
  farthest = Math.max(farthest, Math.hypot(...add(p, add(from, way, share), -1)));
  ++poses;
}
assert.ok(poses > 100);
assert.ok(farthest < 0.01, `${farthest} m away`);
console.log(`ok     ${imu.length} readings of the IMU, integrated, stay within ${(farthest * 1e3).toFixed(2)} mm of the odometry`);

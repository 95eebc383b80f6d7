#!/usr/bin/env python3
"""Two quadrotors with a Livox Avia each fly towards each other along the right side of a street: around what their
scanners see, or blind. Says where they touched something. The same flight as fly.cpp; see docs/uav.md."""

import math
import sys
from collections import deque

import citysplat as cs
import numpy as np

STEP = 0.1  # s, of a sweep and a decision
SPEED = 2.5  # m/s, where nothing is in the way
ASIDE = 2.6  # m to the right of the way of the recording car: parked cars and trees
HEIGHT = 1.2  # m above what is below
RADIUS = 0.8  # m, of the tube that must be free
FREE = 5  # m; so far it should be
SEES = 10  # m; what is farther away does not matter yet
MEMORY = 30  # scans


def shortest(angle):
    return angle - 2 * math.pi * math.floor(angle / (2 * math.pi) + 0.5)


def rounded(v):
    """Commands without their last digits, in which the functions of C libraries differ."""
    return math.floor(v * 1e6 + 0.5) / 1e6


def length(v):
    return math.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])


class Flight:
    def __init__(self, name, start, goal, yaw, seed):
        self.name, self.goal, self.yaw = name, goal, yaw
        self.uav = cs.Uav([*start, 0, 0, rounded(math.sin(yaw / 2)), rounded(math.cos(yaw / 2))], seed=seed)
        self.seen, self.others = deque(maxlen=MEMORY), np.zeros((0, 3))
        self.flown, self.nearest, self.what = 0.0, 1.0, "nothing"
        self.collisions, self.touches, self.arrived = 0, False, False

    def place(self):
        return self.uav.pose[:3]

    def remember(self, scan):
        d = scan.xyz - self.place()
        near = np.sqrt(d[:, 0] * d[:, 0] + d[:, 1] * d[:, 1] + d[:, 2] * d[:, 2]) <= SEES
        hit = scan.points["status"] == 1
        moves = scan.points["instance"] != 0
        every = np.arange(len(scan)) % 8 == 0
        self.others = scan.xyz[near & hit & moves]
        self.seen.append(scan.xyz[near & hit & ~moves & every])

    def free_along(self, direction, radius):
        """How far a tube in this direction is free. Who is nearer to something than that gets away from it."""
        x, y, z = self.away
        along = x * direction[0] + y * direction[1] + z * direction[2]
        tube = np.full(len(x), radius)
        tube[len(x) - len(self.others):] *= 2  # who flies will be elsewhere in a moment
        inside = (along > 0) & (self.away2 - along * along < tube * tube)
        return along[inside].min(initial=SEES)

    def decide(self, blind):
        """The rule: of some directions, those nearest to the one of the goal first, the first that is free far enough,
        otherwise the one that is free farthest; right before left, so that two who meet pass. Slower with less room,
        and where it does not look yet."""
        to = self.goal - self.place()
        far = length(to)
        speed = min(SPEED, far)
        if blind or far < 0.5:
            return to * (speed / far)
        x, y, z = self.away = (np.concatenate([*self.seen, self.others]) - self.place()).T
        self.away2 = x * x + y * y + z * z
        heading, up = math.atan2(to[1], to[0]), math.atan2(to[2], math.hypot(to[0], to[1]))
        wanted, radius = min(FREE, far), min(RADIUS, 0.9 * math.sqrt(self.away2.min(initial=SEES * SEES)))
        best, best_free, best_yaw = np.zeros(3), -1.0, 0.0
        for turn in (0, -15, 15, -30, 30, -50, 50, -75, 75):
            for climb in (0, 25, -25, 50):
                if best_free >= wanted:
                    continue
                yaw = heading + turn * math.pi / 180
                pitch = min(max(up, -0.3), 0.3) + climb * math.pi / 180
                direction = np.array([math.cos(yaw) * math.cos(pitch), math.sin(yaw) * math.cos(pitch), math.sin(pitch)])
                free = self.free_along(direction, radius)
                if free > best_free:
                    best, best_free, best_yaw = direction, free, yaw
        room = 1.0 if best_free >= wanted else min(max((best_free - radius) / FREE, 0.05), 1.0)
        looks_there = abs(shortest(best_yaw - self.yaw)) < 0.6
        return best * (speed * room if looks_there else min(0.3, speed * room))

    def fly(self, now, blind):
        """Returns the poses of the next step."""
        velocity = [rounded(v) for v in self.decide(blind)]
        rate = rounded(min(max(shortest(math.atan2(velocity[1], velocity[0]) - self.yaw) / STEP, -1.5), 1.5))
        self.yaw += rate * STEP
        self.uav.fly_with(velocity, rate)
        before = self.place()
        self.uav.advance_to(now + STEP)
        self.flown += length(self.place() - before)
        self.arrived = length(self.goal - self.place()) < 0.5
        return self.uav.take_poses()

    def look_for_collisions(self, sim, classes, times, poses):
        """How near it comes to anything on the way that it flew, every 10 ms."""
        for time, pose in zip(times[::10], poses[::10]):
            near = sim.clearance(self.uav.box, pose, time, self.name, self.nearest)
            if near["found"]:
                self.nearest = max(near["distance"], 1e-3)  # the limit of the next question
                self.what = near["actor"] or classes.get(near["label"], "")
            if near["touches"] and not self.touches:
                self.collisions += 1
                print(f"{time:.2f} s: {self.name} touches {self.what}")
            self.touches = near["touches"]

    def __str__(self):
        return (f"{self.name}: {self.flown:.1f} m, {'arrived' if self.arrived else 'not arrived'}, nearest "
                f"{0 if self.touches or self.collisions else self.nearest:.2f} m ({self.what}), {self.collisions} collisions")


def main():
    city = cs.open(sys.argv[1])
    times, poses = cs.read_trajectory(sys.argv[2])
    scenario, metres, blind = sys.argv[3], float(sys.argv[4]), sys.argv[5:] == ["blind"]
    sim = city.simulator(scenario=scenario, keep_misses=True)

    def above_ground(place):
        below = sim.cast(place, [[0, 0, -1]], max_range=50)["t_hit"][0]
        return place if np.isinf(below) else np.array([place[0], place[1], place[2] - below + HEIGHT])

    # Along the beginning of the drive.
    start, t, to = poses[0, :3], times[0], poses[0, :3]
    while t < times[-1] and length(to - start) < metres:
        to = np.array([np.interp(t, times, poses[:, k]) for k in range(3)])
        t += 0.05
    ahead = (to - start) * (1 / length(to - start))
    right = np.array([ahead[1], -ahead[0], 0]) * ASIDE
    ends = above_ground(start + right), above_ground(to + right)
    yaws = math.atan2(ahead[1], ahead[0]), math.atan2(-ahead[1], -ahead[0])
    flights = [Flight(name, ends[i], ends[1 - i], yaws[i], i + 1) for i, name in enumerate(("first", "second"))]

    now = 0.0
    while now < 2 * metres and not all(f.arrived for f in flights):
        flown = [f.fly(now, blind) for f in flights]
        for f, way in zip(flights, flown):
            sim.advance(f.name, way)
        for i, (f, way) in enumerate(zip(flights, flown)):
            f.remember(sim.step(now, sensor=i))
            f.look_for_collisions(sim, city.classes, *way)
        now = flights[0].uav.time
    print(*flights, sep="\n")
    return 1 if any(f.collisions or not f.arrived for f in flights) else 0


if __name__ == "__main__":
    sys.exit(main())

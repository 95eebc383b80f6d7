import os
import unittest
from concurrent.futures import ThreadPoolExecutor

import citysplat as cs
import numpy as np
from small_city import program, scratch, small_city

SCENARIO = """
[[object]]
name = "car"
shape = "box"
size_m = [4.0, 1.8, 1.5]
class = "moving vehicle"
[[actor]]
name = "other"
object = "car"
{other}
[[vehicle]]
name = "ego"
{ego}
[[vehicle.sensor]]
name = "roof"
sensor = "vlp-16"
"""


class SessionTest(unittest.TestCase):
    def setUp(self):
        self.small = small_city()
        self.city = cs.open(self.small.city)
        self.times, self.poses = cs.read_trajectory(self.small.trajectory)

    def write(self, name, text):
        path = os.path.join(scratch(), name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_what_is_told_is_what_files_say(self):
        ahead = self.poses.copy()
        ahead[:, 0] += 8
        ahead[:, 2] -= 1.5
        rows = "".join(f"{t!r} {' '.join(repr(float(v)) for v in row)}\n" for t, row in zip(self.times.tolist(), ahead))
        self.write("other.tum", rows)
        files = self.write("files.toml", SCENARIO.format(other='track = "other.tum"',
                                                         ego=f'trajectory = "{self.small.trajectory}"'))
        told = self.write("told.toml", SCENARIO.format(other="place_m = [0, 0, -500]", ego=""))
        by_program = program("simulate", self.small.city, "--scenario", files, "--out", os.path.join(scratch(), "told"))
        self.assertGreater(by_program["part_hits"], 0)
        sim = self.city.simulator(scenario=told)
        self.assertEqual(sim.names, ["ego", "other"])
        self.assertEqual(sim.sensors, ["ego/roof"])
        told_until = 0
        for k in range(by_program["scans"]):
            time = self.times[0] + k / 10
            until = int(np.searchsorted(self.times, time + 0.1 + 1e-6)) + 1
            if until > told_until:
                part = slice(told_until, until)
                sim.advance("other", (self.times[part], ahead[part]))
                sim.advance("ego", (self.times[part], self.poses[part]))
                told_until = until
            sim.step(time, sensor="ego/roof")
        self.assertEqual(sim.digest, by_program["digest"])
        with self.assertRaises(cs.UsageError):
            sim.advance("nobody", (self.times[:1], ahead[:1]))
        sim.leave("other", self.times[-1] + 1)

    def test_rays_meet_what_scans_meet(self):
        sim = self.city.simulator("vlp-16", noise=False, hits=1, keep_misses=True)
        still = (self.times[:1] + np.array([0.0, 1.0]), np.repeat(self.poses[:1], 2, axis=0))
        scan = sim.step(self.times[0], still)
        met = scan.points[scan.points["status"] == 1]
        eye = scan.pose[:3]
        directions = (np.stack([met["x"], met["y"], met["z"]], 1) - eye) / met["range"][:, None]
        hits = self.city.cast(eye, directions)
        self.assertGreater(np.mean(np.abs(hits["t_hit"] - met["range"]) < 1e-3), 0.99)
        self.assertGreater(np.mean(hits["label"] == met["label"]), 0.99)
        splat = met["splat_high"].astype(np.uint64) << np.uint64(32) | met["splat_low"]
        self.assertGreater(np.mean(hits["splat"] == splat), 0.98)
        some = self.city.cast(np.repeat(eye[None], 7, 0), directions[:7] * 3)
        np.testing.assert_allclose(some["t_hit"], hits["t_hit"][:7], atol=1e-5)
        up = self.city.cast(eye, [[0, 0, 1]])
        self.assertEqual(up["t_hit"][0], np.inf)
        self.assertEqual(len(self.city.cast(eye, np.zeros((0, 3)))["t_hit"]), 0)
        for origins, wrong in ((eye, [[0, 0, 0]]), (eye, [[np.nan, 0, 1]]), (eye[:2], [[0, 0, 1]]), (eye, [0, 0, 1]),
                               (eye * np.nan, [[0, 0, 1]])):
            with self.assertRaises(cs.Error):
                self.city.cast(origins, wrong)
        with self.assertRaises(cs.UsageError):
            sim.cast(eye, [[0, 0, 1]], time=np.nan)

    def test_threads_that_share_a_simulator_wait_for_each_other(self):
        sim = self.city.simulator("vlp-16")
        sim.advance("trajectory", (self.times, self.poses))
        with ThreadPoolExecutor(4) as pool:
            indices = list(pool.map(lambda _: sim.step(self.times[0]).index, range(24)))
        self.assertEqual(sorted(indices), list(range(24)))
        self.assertEqual(sim.report()["scans"], 24)

    def test_a_cast_keeps_its_caster_when_another_thread_lets_go_of_it(self):
        class Forgetful(cs.City):
            """As if another thread had closed the city right after each cast found or made its caster."""
            _caster = property(lambda self: None, lambda self, value: None)

        eye = self.poses[0, :3]
        with Forgetful(self.city._path) as city:
            np.testing.assert_array_equal(city.cast(eye, [[0, 0.6, -0.8]])["t_hit"],
                                          self.city.cast(eye, [[0, 0.6, -0.8]])["t_hit"])

    def test_clearance_is_less_than_any_range(self):
        sim = self.city.simulator("vlp-16")
        middle = self.poses[len(self.poses) // 2]
        near = sim.clearance([-0.5, -0.5, -0.5, 0.5, 0.5, 0.5], middle, limit=4)
        self.assertTrue(near["found"])
        self.assertIsNone(near["actor"])
        aside = self.city.cast(middle[:3], [[0, 0.6, -0.8]])["t_hit"][0]  # nothing was scanned below the car itself
        self.assertLess(near["distance"], aside)
        with self.assertRaises(cs.UsageError):
            sim.clearance([1, 1, 1, 0, 0, 0], self.poses[0])


if __name__ == "__main__":
    unittest.main()

import gc
import os
import unittest

import citysplat as cs
import numpy as np
from small_city import program, scratch, small_city


def resident_bytes():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class DriveTest(unittest.TestCase):
    def setUp(self):
        self.small = small_city()
        self.city = cs.open(self.small.city)

    def test_drive_and_step_are_the_command_line(self):
        out = os.path.join(scratch(), "scans")
        by_program = program("simulate", self.small.city, "--sensor", "vlp-16", "--trajectory",
                             self.small.trajectory, "--out", out, "--format", "ply", "--mount", "0,0,0.5", "--seed", 3)
        sim = self.city.simulator("vlp-16", mount=(0, 0, 0.5), seed=3)
        scans = list(sim.drive(self.small.trajectory))
        self.assertEqual(len(scans), by_program["scans"])
        self.assertEqual(sim.digest, by_program["digest"])
        self.assertEqual(sum(map(len, scans)), by_program["hits"])
        for scan in scans[:3]:  # bit for bit the records of the file
            with open(f"{out}/scans/{scan.index:06}.ply", "rb") as file:
                header, body = file.read().split(b"end_header\n", 1)
            self.assertEqual(scan.points.tobytes(), body)
            self.assertEqual([line.split()[-1].decode() for line in header.splitlines() if line.startswith(b"property")],
                             list(scan.points.dtype.names))

        times, poses = cs.read_trajectory(self.small.trajectory)
        step = self.city.simulator("vlp-16", mount=(0, 0, 0.5), seed=3)
        told = 0
        for scan in scans:
            need = int(np.searchsorted(times, scan.time + step.sweep_seconds())) + 1
            fresh = None if need <= told else (times[told:need], poses[told:need])
            told = max(told, min(need, len(times)))
            self.assertEqual(step.step(scan.time, fresh).points.tobytes(), scan.points.tobytes())
        self.assertEqual(step.digest, by_program["digest"])
        # A second drive begins anew.
        self.assertEqual(next(sim.drive(self.small.trajectory)).points.tobytes(), scans[0].points.tobytes())

    def test_frames_misses_and_recorded_fields(self):
        start = cs.read_trajectory(self.small.trajectory)[0][0]
        first = {"stop": start + 0.01}
        world = next(self.city.simulator("vlp-16").drive(self.small.trajectory, **first))
        local = next(self.city.simulator("vlp-16", frame="sensor").drive(self.small.trajectory, **first))
        self.assertEqual(len(world), len(local))
        # The sensor stands still enough: ranges are distances from where it began.
        self.assertLess(np.median(np.abs(np.linalg.norm(local.xyz, axis=1) - local.points["range"])), 0.2)
        every = next(self.city.simulator("vlp-16", keep_misses=True, recorded=True).drive(self.small.trajectory, **first))
        self.assertEqual(len(every), every.rays)
        self.assertIn("recorded_intensity", every.points.dtype.names)
        self.assertEqual(int((every.points["status"] == 1).sum()), len(world))
        dual = next(self.city.simulator("vlp-16", returns="dual").drive(self.small.trajectory, **first))
        self.assertIn("return_number", dual.points.dtype.names)

    def test_arrays_outlive_city_and_simulator(self):
        sim = self.city.simulator("vlp-16")
        scans = list(sim.drive(self.small.trajectory, rate=2))
        kept, copy = scans[0].points, scans[0].points.copy()
        hits = sim.cast(scans[2].pose[:3], [[0, 0.6, -0.8]])
        del sim, scans
        self.city.close()
        gc.collect()
        for scan in cs.open(self.small.city).simulator("vlp-16").drive(self.small.trajectory, rate=5):
            self.assertGreater(len(scan), 0)
        np.testing.assert_array_equal(kept, copy)
        self.assertTrue(np.isfinite(hits["t_hit"]).all())

    def test_memory_stays_the_same_while_a_drive_goes_on(self):
        sim = self.city.simulator("vlp-16", memory="256M")
        sizes = []
        for _ in range(6):
            for scan in sim.drive(self.small.trajectory):
                pass
            gc.collect()
            sizes.append(resident_bytes())
        self.assertGreater(scan.index, 5)
        self.assertLess(sizes[-1], sizes[1] * 1.05 + 8e6, sizes)

    def test_what_cannot_be_is_refused(self):
        sim = self.city.simulator("vlp-16")
        with self.assertRaises(cs.UsageError):
            sim.step(0.0)
        with self.assertRaises(cs.UsageError):
            sim.step(0.0, [[1, 2, 3]])
        with self.assertRaises(cs.BadData):
            sim.step(0.0, [[0, 1, 2, 3, 0, 0, 0, 0]])
        with self.assertRaises(cs.BadData):
            sim.step(0.0, [[np.nan, 1, 2, 3, 0, 0, 0, 1]])
        with self.assertRaises(cs.UsageError):
            list(sim.drive(self.small.trajectory, start=1e9, stop=1e9 + 1))
        with self.assertRaises(cs.ConfigError):
            self.city.simulator("no-such-sensor")
        for wrong in ({"frame": "moon"}, {"hits": 0}, {"memory": "lots"}, {"scenario": "x", "sensor": "vlp-16"},
                      {"gap": np.nan}, {"gap": -5.0}, {"mount": (np.nan, 0, 0)}, {"mount": (1e300, 0, 0)}):
            with self.assertRaises(cs.Error):
                self.city.simulator(**{"sensor": "vlp-16", **wrong})


if __name__ == "__main__":
    unittest.main()

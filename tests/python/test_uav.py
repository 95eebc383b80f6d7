import os
import subprocess
import sys
import threading
import unittest

import citysplat as cs
import numpy as np
from small_city import SOURCE, program, scratch


class UavTest(unittest.TestCase):
    def test_it_flies_as_it_is_told(self):
        start, goal = [651000.0, 6861000.0, 40.0], [651002.0, 6861001.0, 41.0]
        uav = cs.Uav(start, time=100)
        np.testing.assert_array_equal(uav.pose, [*start, 0, 0, 0, 1])
        uav.go_to(goal, yaw=0.5)
        batches = []
        for k in range(1, 101):
            uav.advance_to(100 + 0.1 * k)
            batches.append(uav.take_poses())
        times, poses = (np.concatenate(column) for column in zip(*batches))
        self.assertEqual(poses.shape, (10001, 7))
        np.testing.assert_allclose(np.diff(times), 0.001, atol=1e-9)
        np.testing.assert_allclose(poses[-1, :3], goal, atol=0.01)
        np.testing.assert_array_equal(poses[-1], uav.pose)
        self.assertLess(np.abs(uav.velocity).max(), 0.01)
        readings = uav.take_imu()[1]
        self.assertEqual(readings.shape, (2000, 6))
        self.assertAlmostEqual(readings[-200:, 5].mean(), 9.80665, delta=0.1)
        np.testing.assert_allclose(uav.box, [-0.25, -0.25, -0.1, 0.25, 0.25, 0.1])

    def test_a_thread_may_take_what_another_one_flies(self):
        uav = cs.Uav([0, 0, 10])
        flying = threading.Thread(target=lambda: [uav.advance_to(second) for second in range(1, 61)])
        flying.start()
        taken = []
        while flying.is_alive():
            taken.append(uav.take_poses()[0])
        taken.append(uav.take_poses()[0])
        times = np.concatenate(taken)
        self.assertEqual(len(times), 60001)
        np.testing.assert_allclose(np.diff(times), 0.001, atol=1e-9)

    def test_what_cannot_be_flown_is_refused(self):
        uav = cs.Uav([0, 0, 0])
        for wrong in ([0, 0], [0, 0, np.nan], [np.inf, 0, 0]):
            for command in (uav.go_to, uav.fly_with, uav.push):
                with self.assertRaises(cs.UsageError):
                    command(wrong)
        for time in (-1, np.nan, 1e9):
            with self.assertRaises(cs.UsageError):
                uav.advance_to(time)
        with self.assertRaises(cs.ConfigError):
            cs.Uav([0, 0, 0], model="zeppelin")
        with self.assertRaises(cs.UsageError):
            cs.Uav([0, 0])
        with self.assertRaises(cs.Error):
            cs.Uav([0, 0, np.nan])

    def test_the_example_flies_as_that_in_cpp(self):
        drive, city = os.path.join(scratch(), "street"), os.path.join(scratch(), "street city")
        trajectory = f"{drive}/trajectory.tum"
        program("synth", drive, "--length", 60, "--points-per-metre", 6000, "--seed", 1)
        program("build", city, drive, "--trajectory", trajectory, "--classes", "synthetic")
        examples = os.path.join(SOURCE, "examples")
        arguments = [city, trajectory, os.path.join(examples, "two_uavs.toml"), "40"]
        for how, code in (("careful", 0), ("blind", 1)):
            outcomes = [subprocess.run([*command, *arguments, how], capture_output=True, text=True, check=False)
                        for command in ([sys.executable, os.path.join(examples, "fly.py")], [os.environ["CITYSPLAT_FLY"]])]
            self.assertEqual([o.returncode for o in outcomes], [code, code], [o.stdout + o.stderr for o in outcomes])
            self.assertEqual(outcomes[0].stdout, outcomes[1].stdout)
            self.assertEqual("touches" in outcomes[0].stdout, how == "blind")


if __name__ == "__main__":
    unittest.main()

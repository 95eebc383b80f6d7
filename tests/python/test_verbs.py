import os
import pathlib
import unittest
import warnings

import citysplat as cs
from small_city import program, scratch, small_city


def without_times(report):
    """Results without what depends on the clock and the memory."""
    if isinstance(report, dict):
        return {key: without_times(value) for key, value in report.items()
                if "second" not in key and "rss" not in key and key not in ("created", "backend")}
    return [without_times(value) for value in report] if isinstance(report, list) else report


class VerbsTest(unittest.TestCase):
    def setUp(self):
        self.small = small_city()

    def test_build_is_the_command_line(self):
        city = os.path.join(scratch(), "other")
        notes = []
        report = cs.build(city, self.small.drive, trajectory=self.small.trajectory, classes="synthetic", tile_size=32,
                          progress=notes.append)
        self.assertEqual(report["digest"], self.small.built["digest"])
        self.assertTrue(any(note["finished"] for note in notes))
        self.assertTrue(all(set(note) == {"stage", "done", "total", "unit", "seconds", "finished"} for note in notes))
        self.assertEqual(cs.build(city)["generation"], report["generation"])  # nothing to do
        self.assertEqual(without_times(cs.status(city))["digest"], program("status", city)["digest"])
        self.assertEqual(cs.verify(city, deep=True)["corrupt"], [])

    def test_simulate_and_compare_are_the_command_line(self):
        flags = ["--sensor", "vlp-16", "--trajectory", self.small.trajectory, "--rate", 2, "--format", "las"]
        theirs, ours = (os.path.join(scratch(), name) for name in ("theirs", "ours"))
        by_program = program("simulate", self.small.city, "--out", theirs, *flags)
        report = cs.simulate(self.small.city, ours, sensor="vlp-16", trajectory=self.small.trajectory, rate=2,
                             format="las")
        self.assertEqual(report["digest"], by_program["digest"])
        clouds = [os.path.join(self.small.drive, name) for name in os.listdir(self.small.drive) if name.endswith(".las")]
        references = [word for cloud in clouds for word in ("--reference", cloud)]
        compared = program("compare", os.path.join(theirs, "scans"), *references, "--city", self.small.city)
        self.assertEqual(without_times(cs.compare(os.path.join(ours, "scans"), reference=clouds, city=self.small.city)),
                         without_times(compared))

    def test_names_of_files_may_be_no_text(self):
        link = os.path.join(os.fsencode(scratch()), b"caf\xe9")
        os.symlink(self.small.city, link)
        for name in (link, os.fsdecode(link), pathlib.Path(os.fsdecode(link))):
            self.assertEqual(cs.status(name)["digest"], self.small.built["digest"])
            self.assertEqual(cs.open(name).digest, self.small.built["digest"])

    def test_errors_warnings_and_callbacks(self):
        with self.assertRaises(cs.UsageError) as raised:
            cs.run("no-such-verb")
        self.assertIn("no-such-verb", str(raised.exception))
        with self.assertRaises(cs.UsageError):
            cs.build(self.small.city, no_such_flag=3)
        with self.assertRaises(cs.ConfigError):
            cs.status(os.path.join(scratch(), "nowhere"))
        with self.assertRaises(cs.UsageError):
            cs.run("view", self.small.city)  # would go on for ever

        def stop(note):
            raise ValueError("enough of " + note["stage"])

        with self.assertRaisesRegex(ValueError, "enough of"):
            cs.build(os.path.join(scratch(), "stopped"), self.small.drive, progress=stop)
        far = os.path.join(scratch(), "far.tum")
        with open(far, "w", encoding="ascii") as file:
            file.write("0 9000 9000 0 0 0 0 1\n1 9001 9000 0 0 0 0 1\n")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            cs.simulate(self.small.city, os.path.join(scratch(), "far"), sensor="vlp-16", trajectory=far, rate=1)
        self.assertTrue(any("outside the city" in str(warning.message) for warning in caught))
        self.assertGreater(len(cs.sensors()), 0)


if __name__ == "__main__":
    unittest.main()

import os
import signal
import subprocess
import sys
import time
import unittest

import citysplat as cs
from small_city import program, scratch, small_city

BUILD = """
import sys
import citysplat as cs
def say(note):
    print(note["stage"], flush=True)
try:
    cs.build(sys.argv[1], sys.argv[2], progress=say)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(3)
"""


class Stopped:
    """A build that Ctrl-C met while it worked: what it said, and how long it took to end."""

    def __init__(self, city, drive):
        # Python would be told to ignore the signal when it starts in the background of a shell.
        child = subprocess.Popen([sys.executable, "-c", BUILD, city, drive], stdout=subprocess.PIPE, text=True,
                                 preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
        with child:
            self.said = child.stdout.readline()
            begin = time.monotonic()
            child.send_signal(signal.SIGINT)
            self.said += child.stdout.read()
        self.seconds = time.monotonic() - begin
        self.code = child.returncode


class InterruptTest(unittest.TestCase):
    def test_ctrl_c_ends_a_build_within_a_second_and_leaves_a_city_that_can_be_built(self):
        drive, city, clean = (os.path.join(scratch(), name) for name in ("long", "interrupted", "clean"))
        program("synth", drive, "--length", 40, "--points-per-metre", 10000, "--seed", 5)
        most = 20 if "LD_PRELOAD" in os.environ else 1  # sanitizers slow everything
        # On a busy machine a good answer may come late, but not again and again.
        for attempt in range(3):
            stopped = Stopped(f"{city}{attempt}", drive)
            if stopped.code == 3 and stopped.seconds <= most:
                break
        self.assertEqual(stopped.code, 3, stopped.said)
        self.assertIn("interrupted", stopped.said)
        self.assertLessEqual(stopped.seconds, most)
        self.assertEqual(cs.build(f"{city}{attempt}", drive)["digest"], program("build", clean, drive)["digest"])
        self.assertEqual(cs.verify(f"{city}{attempt}", deep=True)["corrupt"], [])

    def test_ctrl_c_leaves_a_published_city_as_it_was(self):
        small = small_city()
        before = cs.status(small.city)
        more = os.path.join(scratch(), "more")
        program("synth", more, "--length", 40, "--points-per-metre", 10000, "--seed", 6)
        stopped = Stopped(small.city, more)
        if stopped.code == 0:
            self.skipTest("the build was over before the signal came")
        after = cs.status(small.city)
        self.assertEqual((after["generation"], after["digest"]), (before["generation"], before["digest"]))
        self.assertEqual(cs.verify(small.city, deep=True)["corrupt"], [])


if __name__ == "__main__":
    unittest.main()

import os
import signal
import subprocess
import sys
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


class InterruptTest(unittest.TestCase):
    def test_ctrl_c_ends_a_build_and_leaves_a_city_that_can_be_built(self):
        city = os.path.join(scratch(), "interrupted")
        # Python would be told to ignore the signal when it starts in the background of a shell.
        child = subprocess.Popen([sys.executable, "-c", BUILD, city, small_city().drive], stdout=subprocess.PIPE,
                                 text=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
        with child:
            first = child.stdout.readline()
            child.send_signal(signal.SIGINT)
            rest = child.stdout.read()
        self.assertTrue(first)
        if child.returncode == 0:
            self.skipTest("the build was over before the signal came")
        self.assertEqual(child.returncode, 3, rest)
        self.assertIn("interrupted", rest)
        clean = os.path.join(scratch(), "clean")
        self.assertEqual(cs.build(city, small_city().drive)["digest"],
                         program("build", clean, small_city().drive)["digest"])
        self.assertEqual(cs.verify(city, deep=True)["corrupt"], [])


if __name__ == "__main__":
    unittest.main()

"""A short synthetic drive and its city, made once by the program itself, and the program to hold results against."""

import atexit
import functools
import json
import os
import shutil
import subprocess
import tempfile

PROGRAM = os.environ["CITYSPLAT_PROGRAM"]
SOURCE = os.environ["CITYSPLAT_SOURCE"]


def program(*words):
    """What a verb prints with --json. The sanitizer is for the module, not for the program."""
    clean = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run([PROGRAM, "--json", "-q", *map(str, words)], capture_output=True, env=clean, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


@functools.cache
def scratch():
    path = tempfile.mkdtemp(prefix="citysplat-python-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


class SmallCity:
    def __init__(self):
        self.drive = f"{scratch()}/drive"
        self.city = f"{scratch()}/city"
        self.trajectory = f"{self.drive}/trajectory.tum"
        program("synth", self.drive, "--length", 16, "--points-per-metre", 3000, "--seed", 5)
        self.built = program("build", self.city, self.drive, "--trajectory", self.trajectory, "--classes",
                             "synthetic", "--tile-size", 32)


@functools.cache
def small_city():
    return SmallCity()

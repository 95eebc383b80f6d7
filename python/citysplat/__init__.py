"""Splat models of cities from mobile-mapping LiDAR, and simulated LiDARs through them.

See docs/python.md. Everything raises Error or a class below it, whose `code` is the exit code of the program.
"""

import json as _json
import os as _os

import numpy as _np

from . import _citysplat
from ._citysplat import (
    BadData,
    Busy,
    ConfigError,
    Error,
    HeldBack,
    InputOutputError,
    Interrupted,
    Tile,
    Unavailable,
    UsageError,
)

__version__ = _citysplat.version
__all__ = [
    "BadData", "Busy", "City", "ConfigError", "Error", "HeldBack", "InputOutputError", "Interrupted", "Scan",
    "Simulator", "Tile", "Uav", "Unavailable", "UsageError", "build", "clearance", "compare", "export", "open",
    "read_trajectory", "render", "run", "sensors", "simulate", "status", "synth", "verify",
]


def _bytes_of(size):
    return size if isinstance(size, int) else _citysplat.parse_bytes(str(size))


def _three(values, what):
    numbers = [float(v) for v in _np.ravel(values)]
    if len(numbers) != 3:
        raise UsageError(f"{what} is x, y, z, not {len(numbers)} numbers")
    return numbers


def _poses_of(poses):
    """A file, (times, N × 7), or N × 8 with the time in front, as TUM files have it."""
    if isinstance(poses, (str, _os.PathLike)):
        return _citysplat.read_poses(_os.fspath(poses))
    if isinstance(poses, tuple) and len(poses) == 2:
        times, rows = poses
        return _np.atleast_1d(_np.asarray(times, float)), _np.atleast_2d(_np.asarray(rows, float))
    rows = _np.atleast_2d(_np.asarray(poses, float))
    if rows.ndim != 2 or rows.shape[1] != 8:
        raise UsageError("poses are a file, (times, N × 7 array), or an N × 8 array: t x y z qx qy qz qw")
    return _np.ascontiguousarray(rows[:, 0]), _np.ascontiguousarray(rows[:, 1:])


def read_trajectory(file):
    """Times and poses (x, y, z, qx, qy, qz, qw) of a trajectory in any format that the program reads."""
    return _citysplat.read_poses(_os.fspath(file))


class Scan:
    """One sweep of a sensor. `points` has the fields of a PLY file of the scan, in the world's frame or, with
    frame="sensor", in that of the sensor when the sweep began."""

    __slots__ = ("index", "time", "pose", "rays", "points", "frame")

    def __init__(self, raw, frame):
        self.index = raw["index"]
        self.time = raw["time_s"]
        self.pose = raw["pose"]
        self.rays = raw["rays"]
        self.points = raw["points"]
        self.frame = frame

    def __len__(self):
        return len(self.points)

    def __repr__(self):
        return f"<citysplat.Scan {self.index} at {self.time} s: {len(self.points)} returns of {self.rays} rays>"

    @property
    def xyz(self):
        return _np.stack([self.points["x"], self.points["y"], self.points["z"]], axis=1)


class Simulator:
    """Sensors in a city where time passes as the caller says. See docs/python.md."""

    def __init__(self, city, open_session, rows):
        self._city = city
        self._open = open_session
        self._rows = rows
        self._frame = "sensor" if rows.sensor_frame else "world"
        self._session = open_session()

    @property
    def sensors(self):
        return self._session.sensors

    @property
    def names(self):
        """Who can be told where it is."""
        return self._session.names

    @property
    def notes(self):
        return self._session.notes

    @property
    def digest(self):
        """Of all scans of the first sensor since the last drive began."""
        return self.report()["digest"]

    def report(self, sensor=0):
        return self._session.report(self._number(sensor))

    def sweep_seconds(self, sensor=0):
        return self._session.sweep_s(self._number(sensor))

    def _number(self, sensor):
        if isinstance(sensor, str):
            if sensor not in self.sensors:
                raise UsageError(f"there is no sensor \"{sensor}\"; there are {', '.join(self.sensors)}")
            return self.sensors.index(sensor)
        return sensor

    def _own_name(self):
        return "trajectory" if "trajectory" in self.names else self.names[0]

    def advance(self, name, poses):
        """Tells where a vehicle or an object is, as soon as it is known."""
        self._session.advance(name, *_poses_of(poses))

    def leave(self, name, time):
        """The object is not there any more from this time on."""
        self._session.leave(name, time)

    def step(self, time, poses=None, sensor=0):
        """The scan that begins at this time. `poses` are those of its vehicle that are not known yet; together
        they must cover the sweep."""
        if poses is not None:
            self.advance(self._own_name(), poses)
        return Scan(self._session.scan(self._number(sensor), time, self._rows), self._frame)

    def drive(self, trajectory, rate=0, start=-_np.inf, stop=_np.inf, sensor=0):
        """The scans along a trajectory, one after the other; no two of them need be in memory. A drive begins
        anew: its scans, and the digest, are those of `citysplat simulate`."""
        times, poses = _poses_of(trajectory)
        self._session = session = self._open()
        number = self._number(sensor)
        session.advance(self._own_name(), times, poses)
        for time in session.times(number, times, [start, stop, rate]):
            yield Scan(session.scan(number, time, self._rows), self._frame)

    def cast(self, origins, directions, time=0.0, max_range=200.0, min_range=0.0):
        """What rays meet first: arrays t_hit (inf: nothing), normal, label, intensity, instance, splat."""
        return self._session.cast(origins, directions, time, (min_range, max_range))

    def clearance(self, box, pose, time=0.0, vehicle="", limit=1.0):
        """How near a box (lower and upper corner in the frame of the body) at a pose is to anything."""
        return self._session.clearance(
            [float(v) for v in _np.ravel(box)], [float(v) for v in _np.ravel(pose)], time, (vehicle, limit))


class Uav:
    """A quadrotor that is told where to fly, and flies there as its motors and controllers can. See docs/uav.md.
    Its poses are what a simulator is told."""

    def __init__(self, pose, time=0.0, model="quadrotor", seed=1):
        """Hovers at x, y, z[, qx, qy, qz, qw]. The model is a shipped one or a TOML file."""
        start = [float(v) for v in _np.ravel(pose)]
        if len(start) not in (3, 7):
            raise UsageError("a UAV starts at x, y, z[, qx, qy, qz, qw]")
        self._uav = _citysplat.Uav(_os.fspath(model), (start + [0.0, 0.0, 0.0, 1.0])[:7], time, seed)

    def go_to(self, place, yaw=0.0):
        """Fly to a place and stay there; the yaw in radians. Commands hold until the next one."""
        self._uav.go_to(_three(place, "a place"), yaw)

    def fly_with(self, velocity, yaw_rate=0.0):
        """Fly with a velocity in the world, m/s, turning with so many rad/s."""
        self._uav.fly_with(_three(velocity, "a velocity"), yaw_rate)

    def push(self, force):
        """A force from outside, in newtons in the world, until the next one: wind."""
        self._uav.push(_three(force, "a force"))

    def advance_to(self, time):
        """Flies on to that time, in steps of a millisecond."""
        self._uav.advance_to(time)

    @property
    def time(self):
        return self._uav.time_s

    @property
    def pose(self):
        """x, y, z, qx, qy, qz, qw of the centre of mass."""
        return _np.array(self._uav.pose)

    @property
    def velocity(self):
        return _np.array(self._uav.velocity)

    @property
    def box(self):
        """What collides: lower and upper corner in the frame of the pose."""
        return _np.array(self._uav.box)

    def take_poses(self):
        """Times and N × 7 poses since the last call, one for each millisecond."""
        return self._uav.take_poses()

    def take_imu(self):
        """Times and N × 6 readings since the last call: turn rate (rad/s) and force per mass (m/s²)."""
        return self._uav.take_imu()


class City:
    """One generation of a city, opened to read. It stays as it is, whatever is published or removed meanwhile."""

    def __init__(self, path, generation=None):
        self._path = _os.fspath(path)
        self._city = _citysplat.City(self._path, generation)
        self._caster = None
        self._tiles = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __len__(self):
        return len(self.tiles)

    def __repr__(self):
        return f"<citysplat.City {self._path} generation {self.generation}: {self.splats} splats>"

    def close(self):
        """Lets go of the generation. Tiles, scans and simulators live on."""
        self._city = self._caster = self._tiles = None

    def _open(self):
        if self._city is None:
            raise UsageError(f"{self._path} is closed")
        return self._city

    @property
    def generation(self):
        return self._open().generation

    @property
    def digest(self):
        return self._open().digest

    @property
    def crs(self):
        return self._open().crs

    @property
    def splats(self):
        return self._open().splats

    @property
    def classes(self):
        return self._open().classes

    @property
    def tiles(self):
        """A structured array: key, splats, bytes, min, max."""
        if self._tiles is None:
            columns = self._open().tiles()
            width = max([len(key) for key in columns["key"]], default=1)
            tiles = _np.zeros(len(columns["key"]), [("key", f"U{width}"), ("splats", "u8"), ("bytes", "u8"),
                                                    ("min", "f8", 3), ("max", "f8", 3)])
            for name in tiles.dtype.names:
                tiles[name] = columns[name]
            tiles.setflags(write=False)
            self._tiles = tiles
        return self._tiles

    def tile(self, index):
        """Reads a tile and checks it. Its columns are seen where they are, without a copy."""
        return self._open().tile(index)

    def tiles_in(self, low, high):
        """The tiles that touch a box."""
        boxes = self.tiles
        touch = ((boxes["min"] <= _np.asarray(high)) & (boxes["max"] >= _np.asarray(low))).all(axis=1)
        return (self.tile(int(i)) for i in _np.nonzero(touch)[0])

    def simulator(self, sensor=None, *, scenario=None, mount=(), mount_angles=(), seed=1, noise=True, hits=5,
                  gap=0.3, model="", returns="", intensity_noise=False, likely_drops=False, frame="world",
                  keep_misses=False, recorded=False, memory="2G", history=60.0, max_ray=250.0,
                  start=-_np.inf, stop=_np.inf):
        """A sensor, or all that a scenario file says."""
        if (sensor is None) == (scenario is None):
            raise UsageError("a simulator has a sensor or a scenario")
        if frame not in ("world", "sensor"):
            raise UsageError(f"frame \"{frame}\" is neither world nor sensor")
        how = _citysplat.SensorOptions()
        how.sensor, how.model, how.returns = sensor or "", _os.fspath(model), returns
        how.mount_m, how.mount_deg = [float(v) for v in mount], [float(v) for v in mount_angles]
        how.seed, how.noise, how.hits, how.gap_m = seed, noise, hits, gap
        how.intensity_noise, how.likely_drops = intensity_noise, likely_drops
        options = _citysplat.SessionOptions()
        options.memory_bytes, options.history_s, options.max_ray_m = _bytes_of(memory), history, max_ray
        options.from_s, options.to_s = start, stop
        rows = _citysplat.RowOptions()
        rows.sensor_frame, rows.keep_misses, rows.recorded = frame == "sensor", keep_misses, recorded
        city, file = self._open(), _os.fspath(scenario) if scenario else ""
        return Simulator(self, lambda: _citysplat.Session(city, file, how, options), rows)

    def cast(self, origins, directions, max_range=200.0, min_range=0.0, memory="2G"):
        """What rays meet first in the city: arrays t_hit (inf: nothing), normal, label, intensity, splat."""
        key = (memory, max(max_range, 250.0))
        caster = self._caster  # other threads may replace it meanwhile
        if caster is None or caster[0] != key:
            options = _citysplat.SessionOptions()
            options.memory_bytes, options.max_ray_m = _bytes_of(memory), key[1]
            session = _citysplat.Session(self._open(), "", _citysplat.SensorOptions(), options)
            self._caster = caster = (key, session)
        return caster[1].cast(origins, directions, 0.0, (min_range, max_range))

    def render(self, pose, size=(1280, 720), fov=75.0, shade="class", samples=2, edges=True, far=1500.0,
               memory="2G"):
        """A picture as an array, height × width × 3. `pose` is x, y, z[, yaw[, pitch[, roll]]], in degrees."""
        how = _citysplat.PictureOptions()
        how.pose = ([float(v) for v in pose] + [0.0] * 6)[:6]
        how.width, how.height, how.fov_deg, how.far_m = int(size[0]), int(size[1]), fov, far
        how.shade, how.samples, how.edges, how.memory_bytes = shade, samples, edges, _bytes_of(memory)
        return self._open().render(how)


def open(path, generation=None):
    """Opens a city to read: the latest generation, or the given one."""
    return City(path, generation)


def _word(value):
    """Names of files may be any bytes, which Python writes as surrogates where they are no text."""
    return _os.fsdecode(value) if isinstance(value, (bytes, _os.PathLike)) else str(value)


def _words(arguments, flags):
    """Keyword arguments as flags of the program: trajectory="f" is --trajectory f, carve=True is --carve,
    carve=False is --no-carve where there is such a flag (the program says so otherwise)."""
    words = []
    for name, value in flags.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        if value is None:
            continue
        if value is True:
            words.append(flag)
        elif value is False:
            words.append("--no-" + flag[2:])
        elif isinstance(value, (list, tuple)):
            if all(isinstance(item, (int, float)) for item in value):
                words.append(f"{flag}={','.join(repr(item) for item in value)}")
            else:
                for item in value:
                    words += [flag, _word(item)]
        else:
            words.append(f"{flag}={_word(value)}")
    return [_word(argument) for argument in arguments] + words


def run(verb, *arguments, progress=None, **flags):
    """Runs any verb of the program (docs/cli.md) in this process, and returns what it prints with --json."""
    words = [verb, *_words(arguments, flags)]
    return _json.loads(_citysplat.run([_os.fsencode(word) for word in words], progress))


def _inputs(inputs):
    return [inputs] if isinstance(inputs, (str, bytes, _os.PathLike)) else list(inputs)


def build(city, inputs=(), progress=None, **flags):
    """Creates a city, or brings it up to date."""
    return run("build", city, *_inputs(inputs), progress=progress, **flags)


def status(city, **flags):
    return run("status", city, **flags)


def verify(city, progress=None, **flags):
    """Raises BadData when something is damaged."""
    return run("verify", city, progress=progress, **flags)


def simulate(city, out, progress=None, **flags):
    """Writes scans into a folder, as the program does."""
    return run("simulate", *([] if city is None else [city]), out=out, progress=progress, **flags)


def compare(clouds, progress=None, **flags):
    return run("compare", *_inputs(clouds), progress=progress, **flags)


def export(city, out, progress=None, **flags):
    return run("export", city, out=out, progress=progress, **flags)


def clearance(city, progress=None, **flags):
    return run("clearance", city, progress=progress, **flags)


def synth(out, progress=None, **flags):
    """A made drive through a made city whose truth is known."""
    return run("synth", out, progress=progress, **flags)


def sensors(**flags):
    return run("sensors", **flags)


def render(city, pose, **how):
    """A picture of a city as an array, height × width × 3. See City.render()."""
    with open(city) as opened:
        return opened.render(pose, **how)

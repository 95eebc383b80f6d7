import gc
import os
import unittest

import citysplat as cs
import numpy as np
from small_city import program, scratch, small_city


class CityTest(unittest.TestCase):
    def setUp(self):
        self.small = small_city()

    def test_a_city_is_what_the_program_says(self):
        status = program("status", self.small.city)
        with cs.open(self.small.city) as city:
            self.assertEqual(city.digest, status["digest"])
            self.assertEqual(city.generation, status["generation"])
            self.assertEqual(city.splats, status["splats"])
            self.assertEqual(int(city.tiles["splats"].sum()), status["splats"])
            self.assertIn("road", city.classes.values())
            self.assertEqual(sum(len(city.tile(i)) for i in range(len(city))), status["splats"])
        with self.assertRaises(cs.UsageError):
            city.generation  # closed

    def test_columns_are_seen_where_they_are_and_outlive_everything(self):
        city = cs.open(self.small.city)
        index = int(np.argmax(city.tiles["splats"]))
        tile = city.tile(index)
        label, radius = tile.label, tile.radius_steps
        self.assertFalse(label.flags.owndata)
        self.assertFalse(label.flags.writeable)
        self.assertTrue(np.shares_memory(label, tile.label))
        again = label.copy(), radius.copy()
        del city, tile
        gc.collect()
        others = [np.random.default_rng(1).integers(0, 65535, len(label), dtype=np.uint16) for _ in range(20)]
        np.testing.assert_array_equal(label, again[0])
        np.testing.assert_array_equal(radius, again[1])
        self.assertEqual(len(others), 20)

    def test_unpacked_columns_agree_with_the_exported_ply(self):
        out = os.path.join(scratch(), "splats.ply")
        cs.export(self.small.city, out, format="ply")
        with open(out, "rb") as file:
            header, body = file.read().split(b"end_header\n", 1)
        names = {b"double": "f8", b"float": "f4", b"ushort": "u2", b"uchar": "u1", b"uint": "u4", b"int": "i4"}
        fields = [line.split()[1:] for line in header.splitlines() if line.startswith(b"property")]
        ply = np.frombuffer(body, [(name.decode(), names[kind]) for kind, name in fields])
        city = cs.open(self.small.city)
        tiles = [city.tile(i) for i in range(len(city))]
        self.assertEqual(len(ply), sum(map(len, tiles)))
        xyz = np.concatenate([tile.xyz for tile in tiles])
        self.assertLess(np.abs(np.sort(xyz[:, 0]) - np.sort(ply["x"])).max(), 1e-3)
        self.assertAlmostEqual(float(np.concatenate([tile.radius for tile in tiles]).mean(dtype=float)),
                               float(ply["radius"].mean(dtype=float)), places=6)
        lengths = np.linalg.norm(np.concatenate([tile.normal for tile in tiles]), axis=1)
        self.assertLess(np.abs(lengths - 1).max(), 1e-5)
        some = tiles[0]
        self.assertLess(np.abs(some.local + np.array(some.origin) - some.xyz).max(), 1e-6)

    def test_tiles_in_a_box_are_those_that_touch_it(self):
        city = cs.open(self.small.city)
        low, high = city.tiles["min"][0], city.tiles["max"][0]
        self.assertGreaterEqual(len(list(city.tiles_in(low, high))), 1)
        self.assertEqual(len(list(city.tiles_in(high + 1e5, high + 2e5))), 0)

    def test_a_picture_is_an_array(self):
        _, poses = cs.read_trajectory(self.small.trajectory)
        picture = cs.open(self.small.city).render((*poses[0, :3], 0, -20), size=(64, 48), samples=1)
        self.assertEqual((picture.shape, picture.dtype), ((48, 64, 3), np.uint8))
        self.assertGreater(len(np.unique(picture.reshape(-1, 3), axis=0)), 5)
        same = cs.render(self.small.city, (*poses[0, :3], 0, -20), size=(64, 48), samples=1)
        np.testing.assert_array_equal(picture, same)
        for wrong in ({"size": (0, 4)}, {"fov": 1000.0}, {"shade": "none"}, {"samples": 99}):
            with self.assertRaises(cs.UsageError):
                cs.render(self.small.city, (0, 0, 0), **wrong)

    def test_errors_have_the_codes_of_the_program(self):
        with self.assertRaises(cs.ConfigError) as raised:
            cs.open("/nowhere/at/all")
        self.assertEqual((raised.exception.code, raised.exception.kind), (78, "configuration"))
        self.assertIsInstance(raised.exception, cs.Error)
        with self.assertRaises(cs.ConfigError):
            cs.open(self.small.city, generation=99)
        with self.assertRaises(IndexError):
            cs.open(self.small.city).tile(10**6)
        with self.assertRaises(cs.InputOutputError):
            cs.read_trajectory("/nowhere.tum")


if __name__ == "__main__":
    unittest.main()

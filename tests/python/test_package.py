import ast
import inspect
import os
import re
import subprocess
import sys
import unittest

import citysplat as cs
from small_city import SOURCE, scratch, small_city


class PackageTest(unittest.TestCase):
    def run_script_of(self, page, *arguments):
        """The program in a page of the documentation that says that the tests run it: what it prints."""
        with open(os.path.join(SOURCE, "docs", page), encoding="utf-8") as file:
            script = re.search(r"<!-- run by the tests.*?-->\n```python\n(.*?)```", file.read(), re.S).group(1)
        self.assertLessEqual(len(script.splitlines()), 25)
        path = os.path.join(scratch(), f"{page}.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(script)
        done = subprocess.run([sys.executable, path, small_city().city, small_city().trajectory, *arguments],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_the_script_of_the_documentation_runs(self):
        said = self.run_script_of("python.md")
        self.assertRegex(said, r"\d+ returns, \d+ nearer than 10 m")
        self.assertIn("box is free: True", said)

    def test_the_script_that_merges_scans_runs(self):
        said = self.run_script_of("sensors.md", os.path.join(scratch(), "merged"))
        every, cubes, kept = map(int, re.fullmatch(r"(\d+) returns in (\d+) cubes of 10 cm; (\d+) are kept\n", said).groups())
        self.assertGreater(every, 1.2 * kept)
        self.assertAlmostEqual(kept / cubes, 1, delta=0.01)  # the text is rounded

    def test_the_stubs_say_what_is_there(self):
        with open(os.path.join(os.path.dirname(cs.__file__), "__init__.pyi"), encoding="utf-8") as file:
            stub = ast.parse(file.read())
        known = {node.name: node for node in stub.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        for name in cs.__all__:
            self.assertIn(name, known)
        for name, node in known.items():
            thing = getattr(cs, name, None)
            if thing is None:
                self.assertTrue(any("TypedDict" in ast.dump(base) for base in node.bases), name)
            elif isinstance(node, ast.FunctionDef):
                self.check_parameters(node, thing, name)
            else:
                self.check_class(node, thing)

    def check_parameters(self, node, function, name):
        arguments = node.args
        told = [a.arg for a in arguments.posonlyargs + arguments.args + arguments.kwonlyargs]
        for rest in (arguments.vararg, arguments.kwarg):
            told += [rest.arg] if rest else []
        self.assertEqual(sorted(told), sorted(inspect.signature(function).parameters), name)

    def check_class(self, node, thing):
        told = {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)}
        for name, item in told.items():
            self.assertTrue(hasattr(thing, name), f"{node.name}.{name}")
            if inspect.isfunction(getattr(thing, name)):
                self.check_parameters(item, getattr(thing, name), f"{node.name}.{name}")
        for name in vars(thing):
            if not name.startswith("_") and name not in getattr(thing, "__slots__", ()):
                fields = {item.target.id for item in node.body if isinstance(item, ast.AnnAssign)}
                self.assertIn(name, told.keys() | fields | {"code", "kind"}, node.name)

    def test_pip_installs_it_without_a_network(self):
        if "LD_PRELOAD" in os.environ:
            self.skipTest("pip is not run with a sanitizer")
        if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode != 0:
            self.skipTest("there is no pip")
        target = os.path.join(scratch(), "site")
        done = subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-build-isolation", "--no-deps",
             "--disable-pip-version-check", "--root-user-action", "ignore", "--target", target, "--config-settings",
             f"build-dir={os.environ['CITYSPLAT_BUILD']}", SOURCE], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run([sys.executable, "-c", "import citysplat; print(citysplat.__file__, citysplat.__version__)"],
                              capture_output=True, text=True, check=False, env={**clean, "PYTHONPATH": target})
        self.assertIn(target, done.stdout, done.stderr)
        self.assertIn(cs.__version__, done.stdout)


if __name__ == "__main__":
    unittest.main()

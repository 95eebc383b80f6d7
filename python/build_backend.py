"""Builds a wheel of the module with CMake: what pip calls (PEP 517). It needs nothing but the standard library.

Config settings: build-dir, a build folder to use and keep (default: build/python).
"""

import base64
import hashlib
import os
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def _project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def _tag():
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return f"{python}-{python}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def _build(settings, prefix):
    """Compiles the module and installs it, and nothing else, into the folder `prefix`."""
    folder = pathlib.Path((settings or {}).get("build-dir", ROOT / "build" / "python"))
    if not (folder / "CMakeCache.txt").exists():
        subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                        "-DCITYSPLAT_TESTS=OFF", "-DCITYSPLAT_PYTHON=ON",
                        f"-DPython3_EXECUTABLE={sys.executable}"], check=True)
    subprocess.run(["cmake", "--build", folder, "--target", "citysplat_python"], check=True)
    subprocess.run(["cmake", "--install", folder, "--component", "python", "--prefix", prefix], check=True)


def _metadata(project):
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {project['version']}",
             f"Summary: {project['description']}", f"Requires-Python: {project['requires-python']}"]
    return "\n".join(lines + [f"Requires-Dist: {name}" for name in project["dependencies"]]) + "\n"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    project = _project()
    name = f"{project['name']}-{project['version']}"
    files = {f"{name}.dist-info/METADATA": _metadata(project).encode(),
             f"{name}.dist-info/WHEEL": f"Wheel-Version: 1.0\nGenerator: citysplat\nRoot-Is-Purelib: false\n"
                                        f"Tag: {_tag()}\n".encode()}
    with tempfile.TemporaryDirectory() as prefix:
        _build(config_settings, prefix)
        packages = [path.parent for path in pathlib.Path(prefix).rglob("citysplat/__init__.py")]
        for path in sorted(packages[0].iterdir()):
            files[f"citysplat/{path.name}"] = path.read_bytes()
    record = f"{name}.dist-info/RECORD"
    lines = []
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(content)}\n")
    files[record] = "".join(lines + [f"{record},,\n"]).encode()
    wheel = f"{name}-{_tag()}.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return wheel


def get_requires_for_build_wheel(config_settings=None):
    return []


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("citysplat is installed from its sources: pip install .")

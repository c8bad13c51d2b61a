"""The package as it is installed: its wheel, its types, and how it finds libjitc.

usage: packaging_test.py LIBJITC CASE
cases: wheel, finder, types. Ends with 77 where a program is missing that the case needs, and says which.
"""
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
import zipfile

LIBRARY, CASE = pathlib.Path(sys.argv.pop(1)).resolve(), sys.argv.pop(1)
PACKAGE = pathlib.Path(__file__).resolve().parent.parent.parent / "client/python"
VERSION = "import jitc; print(jitc.__version__, jitc._library.library().jitc_version().decode())"


def link_library(directory):
    """By all of its names."""
    for path in LIBRARY.parent.glob("libjitc.so*"):
        (directory / path.name).symlink_to(path.resolve())


class Scratch(unittest.TestCase):
    def setUp(self):
        self.scratch = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        names = ("JITC_LIBRARY", "PYTHONPATH", "LD_LIBRARY_PATH", "XDG_CACHE_HOME")
        self.environment = {name: value for name, value in os.environ.items() if name not in names}
        self.environment.update(HOME=str(self.scratch), PATH="/usr/bin:/bin")

    def run_python(self, *arguments, check=True, **further):
        return subprocess.run([sys.executable, "-B", *map(str, arguments)], text=True, timeout=300, check=check,
                              env={**self.environment, **{name: str(value) for name, value in further.items()}},
                              cwd=self.scratch, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)

    def copy_of_package(self, where):
        """Nothing may be written where the sources are."""
        return shutil.copytree(PACKAGE, where, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))


class Wheel(Scratch):
    def test_wheel(self):
        source = self.copy_of_package(self.scratch / "source")
        pip = ("-m", "pip", "--disable-pip-version-check")
        self.run_python(*pip, "wheel", "--no-build-isolation", "--no-deps", "--no-index", "-w", self.scratch, source)
        wheel, = self.scratch.glob("jitc-*-py3-none-any.whl")
        expected = {str(path.relative_to(source)) for path in (source / "jitc").rglob("*")
                    if path.suffix == ".py" or path.name == "py.typed"}
        self.assertIn("jitc/underworld/__init__.py", expected)
        with zipfile.ZipFile(wheel) as opened:
            self.assertEqual({name for name in opened.namelist() if name.startswith("jitc/")}, expected)
        prefix = self.scratch / "prefix"
        packages = prefix / "lib/python3/site-packages"
        self.run_python(*pip, "install", "--no-deps", "--no-index", "--target", packages, wheel)
        done = self.run_python("-c", VERSION, check=False, PYTHONPATH=packages)
        self.assertIn("UnreachableError", done.stdout)  # pure Python: the library is installed apart
        link_library(prefix / "lib")
        package, library = self.run_python("-c", VERSION, PYTHONPATH=packages).stdout.split()
        self.assertEqual(package, library)
        self.assertIn(package, wheel.name)


class Finder(Scratch):
    def setUp(self):
        super().setUp()
        self.packages = self.scratch / "alone"
        self.packages.mkdir()
        self.copy_of_package(self.packages / "copy")
        self.packages /= "copy"
        self.other = self.scratch / "other"
        (self.other / "bin").mkdir(parents=True)
        (self.other / "lib").mkdir()
        (self.other / "bin/jitc").write_text("#!/bin/sh\n")
        (self.other / "bin/jitc").chmod(0o755)
        link_library(self.other / "lib")

    def version(self, check=True, **further):
        return self.run_python("-c", VERSION, check=check, PYTHONPATH=self.packages, **further).stdout

    def test_places(self):
        self.assertEqual(len(set(self.version(JITC_LIBRARY=LIBRARY).split())), 1)
        self.assertEqual(len(set(self.version(LD_LIBRARY_PATH=self.other / "lib").split())), 1)
        self.assertEqual(len(set(self.version(PATH=f"{self.other / 'bin'}:/usr/bin:/bin").split())), 1)
        (self.packages / "lib").symlink_to(self.other / "lib")
        self.assertEqual(len(set(self.version().split())), 1)

    def test_nowhere(self):
        told = self.version(check=False)
        for words in ("UnreachableError", "libjitc.so", str(self.packages / "jitc"), "on the PATH", "set JITC_LIBRARY"):
            self.assertIn(words, told)
        told = self.version(check=False, JITC_LIBRARY="/nowhere/libjitc.so", PATH=f"{self.other / 'bin'}:/usr/bin:/bin")
        self.assertIn("/nowhere/libjitc.so", told)  # and nothing else is taken in its place

    def test_other_versions(self):
        for version, is_right in (("9.0.0", False), ("0.0.9", False), ("0.2.0", False), ("0.1.0", True),
                                  ("0.1.7", True)):
            source, target = self.scratch / "version.c", self.scratch / f"version-{version}.so"
            source.write_text(f'const char *jitc_version(void) {{ return "{version}"; }}\n')
            subprocess.run(["gcc", "-shared", "-fPIC", "-o", target, source], check=True)
            told = self.version(check=False, JITC_LIBRARY=target)
            self.assertIn("VersionSkewError", told)
            self.assertIn("has no function" if is_right else f"the library's version is {version}", told)

    def test_without_mpi4py(self):
        """This process alone needs none."""
        program = "import sys; sys.modules['mpi4py'] = None\nimport jitc\nprint(jitc.Context().stats['calls'])"
        done = self.run_python("-c", program, PYTHONPATH=self.packages, JITC_LIBRARY=LIBRARY)
        self.assertEqual(done.stdout.strip(), "0")


class Types(Scratch):
    def test_package_and_caller(self):
        """The package is typed throughout, and its callers' mistakes are found."""
        program = self.scratch / "caller.py"
        program.write_text(textwrap.dedent("""
            import jitc
            module = jitc.compile("double f(double x) { return x; }", flags=["-O2"], comm=None)
            address: int = module.functions["f"].address
            key: int = module.key
            jitc.compile(3)
            """))
        done = self.run_python("-m", "mypy", "--cache-dir", self.scratch / "cache", "--config-file",
                               PACKAGE / "pyproject.toml", PACKAGE / "jitc", program, check=False, MYPYPATH=PACKAGE)
        errors = [line for line in done.stdout.splitlines() if ": error:" in line]
        self.assertEqual([line.rpartition("/")[2].split(":")[:2] for line in errors],
                         [["caller.py", "5"], ["caller.py", "6"]], done.stdout)


NEEDED = {"wheel": ("pip", "setuptools", "wheel"), "finder": (), "types": ("mypy", "mpi4py")}

if __name__ == "__main__":
    missing = [name for name in NEEDED[CASE] if importlib.util.find_spec(name) is None]
    if missing:
        print(f"skipped: /usr/bin/python3 has no {', '.join(missing)}")
        sys.exit(77)
    case = {"wheel": Wheel, "finder": Finder, "types": Types}[CASE]
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(case)
    sys.exit(not unittest.TextTestRunner().run(suite).wasSuccessful())

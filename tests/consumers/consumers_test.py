"""A project of one language outside this tree, against a fresh installation that was moved after it was installed: it
builds, and under mpirun it gets its module from a daemon of that installation, compiled once.

usage: consumers_test.py BUILD_DIRECTORY PROJECT make|cmake|script -- MPIRUN...
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "faults"))
from harness import Node, without_settings  # noqa: E402

BUILD, PROJECT, WAY = sys.argv[1:4]
MPIRUN = sys.argv[sys.argv.index("--") + 1:]
SKIPPED = 77
PATIENCE = 300  # seconds; ends a hang, measures nothing
VALUE = {"fortran": "42.25"}.get(PROJECT, "42")


def run(*command, **kwargs):
    done = subprocess.run([*map(str, command)], text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **kwargs)
    return done.returncode, done.stdout


def expect_success(*command, **kwargs):
    code, text = run(*command, **kwargs)
    assert code == 0, (command, text)
    return text


class Installation:
    """Below `scratch`, whose tools find it by the environment alone, as those of a user do."""

    def __init__(self, scratch):
        first, self.prefix = scratch / "first", scratch / "moved"
        expect_success("cmake", "--install", BUILD, "--prefix", first)
        first.rename(self.prefix)
        self.version = expect_success(self.prefix / "bin" / "jitc", "--version").split()[-1]
        (self.config,) = (path.relative_to(self.prefix) for path in self.prefix.glob("lib*/**/jitcConfig.cmake"))
        (pkgconfig,) = self.prefix.glob("lib*/**/pkgconfig")
        (packages,) = self.prefix.glob("lib*/**/dist-packages")
        self.environment = {**without_settings(os.environ), "PKG_CONFIG_PATH": str(pkgconfig),
                            "CMAKE_PREFIX_PATH": str(self.prefix), "PYTHONPATH": str(packages),
                            "MPICC": "mpicc.openmpi", "MPIFORT": "mpifort.openmpi",
                            "PYTHONDONTWRITEBYTECODE": "1"}

    def configure(self, source, *arguments):
        return run("cmake", "-S", source, "-B", source / "build", "-DMPI_EXECUTABLE_SUFFIX=.openmpi", *arguments,
                   env=self.environment)

    def expect_refusal_of_a_newer_version(self, source):
        code, text = self.configure(source, "-DJITC_WANTED=99.0")
        words = " ".join(text.split())
        assert code != 0 and 'package "jitc" that is compatible with requested version "99.0"' in words, text
        assert f"moved/{self.config}, version: {self.version}" in words, text

    def program(self, source):
        """The project built: its command."""
        if WAY == "script":
            return ["/usr/bin/python3", source / "main.py"]
        if WAY == "make":
            expect_success("make", "-C", source, env=self.environment)
            return [source / "consumer"]
        if PROJECT == "cxx":
            self.expect_refusal_of_a_newer_version(source)
        code, text = self.configure(source, "-DJITC_WANTED=0.1")
        assert code == 0, text
        expect_success("cmake", "--build", source / "build", env=self.environment)
        return [source / "build" / "consumer"]


def expect_one_compile(node, installation, program):
    environment = {**installation.environment, **node.settings()}
    for compilers in (1, 0):
        text = expect_success(*MPIRUN, "-n", "2", *program, env=environment)
        assert text.splitlines() == [f"ranks 2, mean {VALUE}, compilers started {compilers}"], text
    assert node.stats()["compiles_started"] == 1, node.stats()


def main():
    if PROJECT == "python" and run("/usr/bin/python3", "-c", "import mpi4py, numpy")[0] != 0:
        print("skipped: the system's Python has no mpi4py or no numpy")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory(prefix="jitc-consumer-") as directory:
        scratch = pathlib.Path(directory)
        for name in {"c", PROJECT}:  # Fortran's communicator is C's
            shutil.copytree(TESTS / "consumers" / name, scratch / "consumers" / name)
        installation = Installation(scratch)
        program = installation.program(scratch / "consumers" / PROJECT)
        with Node(installation.prefix / "bin") as node:
            started = node.jitc("daemon", "start")
            assert started.returncode == 0, started.stderr
            expect_one_compile(node, installation, program)


main()

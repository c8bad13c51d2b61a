"""The environment module of an installation, by Environment Modules and by Lmod, whichever there is: a shell that loads it
has everything at hand, and nothing of it when it unloads it.

usage: modulefile_test.py BUILD_DIRECTORY
"""
import os
import pathlib
import subprocess
import sys
import tempfile

BUILD = sys.argv[1]
SKIPPED = 77
PATIENCE = 120  # seconds; ends a hang, measures nothing
SYSTEMS = [*pathlib.Path("/usr/lib").glob("*/modulecmd.tcl"),
           *pathlib.Path("/usr/share/lmod").glob("lmod/libexec/lmod")]
SCRIPT = """set -e
unset BASH_ENV LOADEDMODULES _LMFILES_ PYTHONPATH CMAKE_PREFIX_PATH PKG_CONFIG_PATH LD_LIBRARY_PATH MANPATH
export MODULEPATH="$1/share/jitc/modulefiles"
eval "$("$2" bash load jitc)"
jitc --version
command -v jitc
pkg-config --modversion jitc
pkg-config --variable=fortran_module jitc
python3 -c 'import jitc; print(jitc.__file__)'
echo "$JITC_ROOT:$CMAKE_PREFIX_PATH"
eval "$("$2" bash unload jitc)"
command -v jitc || echo "unloaded $JITC_ROOT$PYTHONPATH$CMAKE_PREFIX_PATH$PKG_CONFIG_PATH"
"""


def run(*command, **kwargs):
    done = subprocess.run([*map(str, command)], text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, **kwargs)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout.splitlines()


def main():
    if not SYSTEMS:
        print("skipped: neither Environment Modules nor Lmod is installed")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory(prefix="jitc-module-") as directory:
        prefix = pathlib.Path(directory, "prefix")
        run("cmake", "--install", BUILD, "--prefix", prefix)
        environment = {"PATH": "/usr/bin:/bin", "HOME": directory, "LC_ALL": "C.UTF-8", "TMPDIR": directory,
                       "PYTHONDONTWRITEBYTECODE": "1"}
        for system in SYSTEMS:
            said = run("bash", "-c", SCRIPT, "bash", prefix, system, env=environment)
            version, *places, roots, end = said
            name, number = version.split()
            command, pkg_config, fortran, package = places
            assert (name, number) == ("jitc", pkg_config), said
            assert command == f"{prefix}/bin/jitc", said
            assert os.path.samefile(fortran, prefix / "include/jitc/jitc.f90"), said
            assert package.startswith(f"{prefix}/lib") and package.endswith("/jitc/__init__.py"), said
            assert roots == f"{prefix}:{prefix}" and end == "unloaded ", said


main()

"""What the tests of a faulty shared store work with: rules for the preloaded shim (fault_shim.cc), a directory as other
nodes see it (lagging_fs.cc), and a solver under mpirun that is told call by call what to do (driven_solver.cc)."""
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile

FROM_MEMORY, FROM_RANK, FROM_STORE, FROM_DAEMON, COMPILED = range(5)
SKIPPED = 77


def skip(reason):
    """Ends the test as one that cannot run here."""
    print(f"skipped: {reason}", flush=True)
    sys.exit(SKIPPED)


def source(node, number):
    """A text of its own for each number, and what its answer(2) is."""
    text = f"#include <math.h>\ndouble answer(double x) {{ return 42.0 * x + cos(0.0) + {number}.0; }}\n"
    return node.write(f"answer{number}.c", text), 85 + number


class Shim:
    """The shim's rules for some processes, and what it tells of them. `directory` is the test's own."""

    def __init__(self, library, directory, name):
        self.library = library
        self.rules = pathlib.Path(directory) / f"{name}.rules"
        log = f"{self.rules}.log"
        os.mkfifo(log)
        self._log = os.open(log, os.O_RDWR | os.O_NONBLOCK)  # a line is an event; the writers find a reader always
        self._rest = b""
        self.set()

    def environment(self):
        return {"LD_PRELOAD": str(self.library), "FAULT_RULES": str(self.rules)}

    def set(self, *rules):
        """These from now on, and none of before; what was told until now is forgotten."""
        fresh = self.rules.with_suffix(".new")
        fresh.write_text("".join(f"{rule}\n" for rule in rules))
        fresh.rename(self.rules)
        self.told()

    def told(self):
        """Each line since the last look, as a dictionary."""
        try:
            while chunk := os.read(self._log, 1 << 16):
                self._rest += chunk
        except BlockingIOError:
            pass
        *lines, self._rest = self._rest.split(b"\n")
        names = ("pid", "rank", "program", "operation", "effect", "path")
        return [dict(zip(names, line.decode().split(" ", 5))) for line in lines]

    def faults(self):
        return [line for line in self.told() if line["effect"] != "watch"]

    def wait_for_a_line(self):
        ready, _, _ = select.select([self._log], [], [], 100)
        assert ready, "the shim tells nothing"
        return self.told()


class Hold:
    """The FIFO of a `hold` rule: the call that waits on it goes on when this is released."""

    def __init__(self, directory, name="hold"):
        self.path = pathlib.Path(directory) / name
        os.mkfifo(self.path)

    def release(self):
        """Of the calls that wait now; with nobody waiting it waits for the first."""
        os.close(os.open(self.path, os.O_WRONLY))


class Solver:
    """`ranks` ranks under mpirun; `environments` are dictionaries of further variables, one for each rank."""

    def __init__(self, mpirun, program, environments, wrapper=()):
        ranks = []
        for environment in environments:
            words = [":"] if ranks else []
            settings = [f"{name}={value}" for name, value in environment.items()]
            ranks += [*words, "-n", "1", "env", *settings, *map(str, wrapper), str(program)]
        allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        self._words = tempfile.TemporaryFile("w+", encoding="utf-8")  # warnings, and what a rank says when it fails
        self._job = subprocess.Popen([*mpirun, *ranks], env={**os.environ, **allowed}, text=True,
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._words)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            self._job.send_signal(signal.SIGTERM)
        self._job.communicate()
        with self._words:
            self._words.seek(0)
            if kind is not None or self._job.returncode != 0:
                print(self._words.read(), file=sys.stderr)
        assert kind is not None or self._job.returncode == 0, f"mpirun ended with {self._job.returncode}"

    def tell(self, line):
        self._job.stdin.write(line + "\n")
        self._job.stdin.flush()

    def answer(self):
        line = self._job.stdout.readline()
        assert line, "the solver has ended"
        told = json.loads(line)
        assert told["same"], told
        return told

    def compile(self, path):
        """Gives the module back, compiles the file's text on all ranks and calls it."""
        self.tell(f"compile {path}")
        return self.answer()

    def expect(self, path, value, *origins):
        """As compile(), and the right function comes from one of these origins."""
        told = self.compile(path)
        assert told["kind"] == "OK" and told["value"] == value and told["origin"] in origins, (told, value, origins)
        return told


class Mount:
    """A node's sight of a shared directory (lagging_fs.cc). `skip`s the test where there is no FUSE."""

    def __init__(self, program, backing, mount_point, *options):
        if not os.access("/dev/fuse", os.R_OK | os.W_OK):
            skip("no access to /dev/fuse")
        self.path = pathlib.Path(mount_point)
        self.path.mkdir()
        self._process = subprocess.Popen([str(program), str(backing), str(self.path), *options], text=True,
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if self._process.stdout.readline() != "mounted\n":
            skip("FUSE cannot be mounted: " + self._process.communicate()[1].strip())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.communicate()

    def look_again(self, what="all"):
        """At "all", or at "names" only: then what is new has no contents yet."""
        (self.path / ".node").write_text(what)

    def counters(self):
        lines = (self.path / ".node").read_text().splitlines()
        return {name: int(value) for name, value in map(str.split, lines)}


def artifacts(store):
    return sorted(pathlib.Path(store).glob("v1/??/*.so"))


def temporaries(store):
    return sorted(pathlib.Path(store).glob("v1/tmp/*"))

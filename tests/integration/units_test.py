"""The systemd units of an installation: systemd finds nothing wrong with them, and the template's daemon serves its user
on a socket at which root listens, as the system's manager does.

usage: units_test.py BUILD_DIRECTORY verify|activate
"""
import os
import pathlib
import select
import shutil
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "faults"))
from harness import without_settings  # noqa: E402

BUILD, MODE = sys.argv[1:]
SKIPPED = 77
PATIENCE = 120  # seconds; ends a hang, measures nothing
ALICE = 70001  # a uid that nobody has
MOST_EXPOSURE = 25  # by systemd-analyze, of 100: what a service could do if it were taken over


def skip(reason):
    print("skipped:", reason)
    sys.exit(SKIPPED)


def verify(scratch, units):
    if not shutil.which("systemd-analyze"):
        skip("systemd-analyze is not installed")
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(scratch), "SYSTEMD_LOG_LEVEL": "notice"}

    def analyze(*arguments):
        done = subprocess.run(["systemd-analyze", *map(str, arguments)], env=environment, text=True, timeout=PATIENCE,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        assert done.returncode == 0, (arguments, done.stdout)
        return done.stdout

    user, system = units / "user", units / "system"
    for said in (analyze("--user", "verify", "--man=no", user / "jitcd.service", user / "jitcd.socket"),
                 analyze("verify", "--man=no", system / "jitcd@root.service", system / "jitcd@root.socket",
                         system / "jitc.slice")):
        assert "jitc" not in said, said  # of units that they refer to systemd may have to tell something
    analyze("security", "--offline=true", f"--threshold={MOST_EXPOSURE}", system / "jitcd@.service")


def options_of(unit):
    """Of a unit file, in order."""
    lines = (line.split("=", 1) for line in unit.read_text().splitlines() if "=" in line and not line.startswith("#"))
    return list(lines)


class Manager:
    """What the system's manager does for jitcd@alice.socket and jitcd@alice.service."""

    def __init__(self, units, run):
        service = dict(options_of(units / "jitcd@.service"))
        (self.path,) = (value for name, value in options_of(units / "jitcd@.socket") if name == "ListenStream")
        self.runtime_dir = run / "jitc" / "alice"
        assert self.path == "%t/jitc/%i/jitcd.sock" and service["Environment"] == "JITC_RUNTIME_DIR=%t/jitc/%i"
        self.command = service["ExecStart"].split()
        self.runtime_dir.mkdir(parents=True)
        os.chown(self.runtime_dir, ALICE, ALICE)
        self.runtime_dir.chmod(0o700)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(self.runtime_dir / "jitcd.sock"))
        os.chown(self.runtime_dir / "jitcd.sock", ALICE, ALICE)
        (self.runtime_dir / "jitcd.sock").chmod(0o600)
        self.socket.listen()
        self.environment = {**without_settings(os.environ), "JITC_RUNTIME_DIR": str(self.runtime_dir),
                            "JITC_STORE": str(run / "alice" / "store"), "HOME": str(run / "alice"),
                            "TMPDIR": str(run / "alice")}
        (run / "alice").mkdir()
        os.chown(run / "alice", ALICE, ALICE)

    def as_alice(self, *command, **kwargs):
        return subprocess.Popen(["setpriv", f"--reuid={ALICE}", f"--regid={ALICE}", "--clear-groups",
                                 "--no-new-privs", *map(str, command)], env=self.environment, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)

    def start_when_somebody_connects(self):
        ready, _, _ = select.select([self.socket], [], [], PATIENCE)
        assert ready, "nobody connects"
        # The socket is descriptor 3, as sd_listen_fds(3) has it; setpriv and sh keep it and the process's number.
        script = 'exec 3<&"$1"; shift; LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"'
        return self.as_alice("sh", "-c", script, "sh", self.socket.fileno(), *self.command,
                             pass_fds=[self.socket.fileno()])


def activate(scratch, units):
    if os.geteuid() != 0:
        skip("another user's daemon needs root")
    manager = Manager(units / "system", scratch / "run")
    jitc = pathlib.Path(manager.command[0]).parent / "jitc"
    source = scratch / "answer.c"
    source.write_text("double answer(double x) { return 42 * x; }\n")
    asked = manager.as_alice(jitc, "submit", source)
    daemon = manager.start_when_somebody_connects()
    try:
        path, said = asked.communicate(timeout=PATIENCE)
        assert asked.returncode == 0 and path.startswith(manager.environment["JITC_STORE"]), (path, said)
        assert os.stat(path.strip()).st_uid == ALICE
        lock = (manager.runtime_dir / "jitcd.lock").read_text()
        assert int(lock) == daemon.pid, (lock, daemon.pid)
        stopped = manager.as_alice(jitc, "daemon", "stop")
        assert stopped.wait(PATIENCE) == 0, stopped.communicate()
        assert daemon.wait(PATIENCE) == 0, daemon.communicate()
    finally:
        daemon.kill()
        words = daemon.communicate()
    assert (manager.runtime_dir / "jitcd.sock").is_socket(), words  # it is the manager's, for the next time


with tempfile.TemporaryDirectory(prefix="jitc-units-") as directory:
    SCRATCH = pathlib.Path(directory)
    SCRATCH.chmod(0o755)  # Alice starts programs from there
    installed = subprocess.run(["cmake", "--install", BUILD, "--prefix", str(SCRATCH / "prefix")], text=True,
                               timeout=PATIENCE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert installed.returncode == 0, installed.stdout
    (SCRATCH / "run").mkdir()
    {"verify": verify, "activate": activate}[MODE](SCRATCH, SCRATCH / "prefix/lib/systemd")

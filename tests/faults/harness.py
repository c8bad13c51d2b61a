"""A daemon of one's own in a scratch directory, and what the fault tests ask of it. Standard library only."""
import json
import os
import pathlib
import subprocess
import tempfile


class Node:
    """Fresh store, runtime and temporary directory; the command `jitc` against them. Use as a context manager."""

    def __init__(self, bin_directory, **settings):
        self.bin = pathlib.Path(bin_directory)
        self._scratch = tempfile.TemporaryDirectory(prefix="jitc-fault-")
        self.scratch = pathlib.Path(self._scratch.name)
        self.run_directory = self.scratch / "run"
        self.store = self.scratch / "store"
        temporary = self.scratch / "tmp"
        temporary.mkdir()
        self.environment = {**without_settings(os.environ), "JITC_RUNTIME_DIR": str(self.run_directory),
                            "JITC_STORE": str(self.store), "TMPDIR": str(temporary), "HOME": str(self.scratch), **settings}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.jitc("daemon", "stop")
        self._scratch.cleanup()

    def settings(self):
        """What makes a process one of this node's; of the environment no more than that."""
        return {name: value for name, value in self.environment.items()
                if name.startswith("JITC_") or name in ("HOME", "TMPDIR")}

    def jitc(self, *arguments, further=None, **kwargs):
        """Runs `jitc` to its end, `further` in its environment; limited to two minutes, since a hang is a failure."""
        environment = {**self.environment, **(further or {})}
        return subprocess.run([str(self.bin / "jitc"), *map(str, arguments)], env=environment, text=True, timeout=120,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)

    def start_jitc(self, *arguments):
        return subprocess.Popen([str(self.bin / "jitc"), *map(str, arguments)], env=self.environment, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def stats(self):
        done = self.jitc("stats", "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def write(self, name, text):
        path = self.scratch / name
        path.write_text(text)
        return path

    def daemon_pid(self):
        """None when no daemon has left its identity file."""
        try:
            return json.loads((self.run_directory / "identity.json").read_text())["pid"]
        except (FileNotFoundError, ValueError):
            return None

    def processes(self):
        """Every live process that belongs to this node's daemon, by its environment or working directory."""
        mine = f"JITC_RUNTIME_DIR={self.run_directory}".encode()
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
                belongs = mine in (entry / "environ").read_bytes().split(b"\0") or \
                    os.readlink(entry / "cwd").startswith(str(self.scratch))
                if belongs and state != "Z":
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
        return found


def without_settings(environment):
    """What the caller has set for jitc itself is not the test's."""
    return {name: value for name, value in environment.items() if not name.startswith(("JITC_", "XDG_"))}


def children(pid):
    try:
        return [int(p) for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []

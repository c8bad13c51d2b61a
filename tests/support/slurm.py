"""A Slurm of one's own: three nodes that share this host, below a temporary directory, on free ports of the loopback.
Standard library only; as root."""
import contextlib
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

NODES = ("n1", "n2", "n3")
PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "salloc", "scancel")
PATIENCE = 120  # seconds; ends a hang, measures nothing
SKIPPED = 77
# Three nodes on one host: what OpenMPI sends between them goes by the loopback.
OPENMPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl": "self,tcp",
           "OMPI_MCA_btl_tcp_if_include": "lo", "OMPI_MCA_oob_tcp_if_include": "lo",
           "OMPI_MCA_mpi_yield_when_idle": "1"}


def skip(reason):
    print("skipped:", reason, flush=True)
    sys.exit(SKIPPED)


def enter_namespace():
    """Runs this program again as the first process of a namespace: whatever way it ends, all that it started ends with
    it, daemons and Slurm's own children too; and what it sees of /proc is what it started."""
    if os.environ.pop("JITC_TEST_NAMESPACE", "") == "entered":
        return
    if os.geteuid() != 0:
        skip("a Slurm of one's own needs root")
    for program in (*PROGRAMS, "unshare"):
        if not program_path(program):
            skip(f"{program} is not installed")
    unshare = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child=SIGKILL"]
    if subprocess.run([*unshare, "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        skip("no namespace of processes can be made here")
    os.environ["JITC_TEST_NAMESPACE"] = "entered"
    os.execvp(unshare[0], [*unshare, sys.executable, *sys.argv])


def program_path(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def free_ports(count):
    with contextlib.ExitStack() as all_at_once:
        sockets = [all_at_once.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Service:
    """A daemon in the foreground that says on standard error when it serves."""

    def __init__(self, command, environment, says):
        self.name = pathlib.Path(command[0]).name
        self.said = []
        self._serves = threading.Event()
        self._pattern = re.compile(says)
        self._process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                         stderr=subprocess.PIPE, text=True, errors="replace")
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self.pid = self._process.pid

    def _read(self):
        for line in self._process.stderr:
            self.said.append(line)
            if self._pattern.search(line):
                self._serves.set()
        self._serves.set()  # it has ended, and will not any more

    def wait_until_it_serves(self):
        if not self._serves.wait(PATIENCE) or not any(map(self._pattern.search, self.said)):
            raise RuntimeError(f"{self.name} does not serve:\n{self.words()}")

    def words(self):
        return "".join(self.said[-200:])

    def kill(self):
        self._process.kill()
        self._process.wait()
        self._reader.join()


class Slurm:
    """Use as a context manager; `environment` is for what talks to it. Needs enter_namespace()."""

    def __init__(self, settings=""):
        """`settings`: further lines of slurm.conf, in which {scratch} is the directory."""
        self._settings = settings
        self._scratch = tempfile.TemporaryDirectory(prefix="jitc-slurm-")
        self.scratch = pathlib.Path(self._scratch.name)
        self.scratch.chmod(0o755)  # munge's socket must be within everybody's reach
        for name in ("home", "tmp", "state", "log", *NODES):
            (self.scratch / name).mkdir()
        self.socket = self.scratch / "munge.socket"
        self._services = []
        self.environment = {"PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin", "LANG": "C.UTF-8",
                            "HOME": str(self.scratch / "home"), "TMPDIR": str(self.scratch / "tmp"),
                            "SLURM_CONF": str(self.scratch / "slurm.conf")}

    def __enter__(self):
        try:
            self._start_munge()
            self._start_slurm()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind, *_):
        for service in self._services:  # what they would put in order first goes with the directory
            service.kill()
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if kind is not None:
            for service in self._services:
                print(f"---- {service.name}\n{service.words()}", file=sys.stderr)
        self._scratch.cleanup()

    def _start(self, says, *command):
        path = program_path(command[0])
        service = Service([path, *map(str, command[1:])], self.environment, says)
        self._services.append(service)
        return service

    def _start_munge(self):
        key = self.scratch / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        files = [f"--{what}-file={self.scratch / 'munge'}.{what}" for what in ("pid", "seed", "key")]
        self._start("Created .* work threads", "munged", "--foreground", "--num-threads=2", f"--socket={self.socket}",
                    *files).wait_until_it_serves()

    def _start_slurm(self):
        host = socket.gethostname()
        controller, *ports = free_ports(1 + len(NODES))
        nodes = "".join(f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=4 RealMemory=8000\n"
                        for name, port in zip(NODES, ports))
        (self.scratch / "slurm.conf").write_text(f"""ClusterName=jitc
SlurmctldHost={host}(127.0.0.1)
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmctldPort={controller}
SlurmUser=root
SlurmdUser=root
AuthInfo=socket={self.socket}
StateSaveLocation={self.scratch}/state
SlurmctldPidFile={self.scratch}/slurmctld.pid
SlurmdPidFile={self.scratch}/%n/slurmd.pid
SlurmdSpoolDir={self.scratch}/%n
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
ReturnToService=2
{self._settings.format(scratch=self.scratch)}{nodes}PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
""")
        starting = [self._start("Running as primary controller", "slurmctld", "-D", "-i")]
        starting += [self._start("slurmd started on", "slurmd", "-D", "-N", name) for name in NODES]
        for service in starting:
            service.wait_until_it_serves()

    def run(self, *command, **environment):
        """Runs one of Slurm's commands to its end."""
        return subprocess.run([*map(str, command)], env={**self.environment, **environment}, cwd=self.scratch,
                              text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)

    def start(self, *command, **environment):
        """The same, without waiting for it."""
        return subprocess.Popen([*map(str, command)], env={**self.environment, **environment}, cwd=self.scratch,
                                text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def batch(self, *arguments, **environment):
        """Submits a batch job: its number, and a descriptor with what it prints, whose end is the end of its script."""
        output = self.scratch / f"output-{len(list(self.scratch.glob('output-*')))}"
        os.mkfifo(output)
        reader = os.open(output, os.O_RDONLY | os.O_NONBLOCK)
        done = self.run("sbatch", "--parsable", f"--output={output}", *arguments, **environment)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip(), reader

    def processes(self):
        """Every live process of this namespace but this one, the services and their helpers: pid to command line."""
        found = {}
        own = {os.getpid(), *(service.pid for service in self._services)}
        helpers = {service.pid for service in self._services if service.name == "slurmctld"}
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) in own:
                continue
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                state, parent = (entry / "stat").read_text().rsplit(")", 1)[1].split()[:2]
                if state != "Z" and int(parent) not in helpers:
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
        return found

    def wait_for_the_end_of_all(self):
        """Of every process that belongs to a job."""
        while left := self.processes():
            for pid in left:
                wait_for_end(pid)


def read_to_end(reader):
    """All that comes out of a descriptor, which is closed."""
    text = b""
    while True:
        ready, _, _ = select.select([reader], [], [], PATIENCE)
        part = os.read(reader, 1 << 16) if ready else b""
        text += part
        if not part:
            os.close(reader)
            assert ready, f"no end comes after: {text.decode(errors='replace')}"
            return text.decode(errors="replace")


def wait_for_end(pid):
    try:
        end = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    ready, _, _ = select.select([end], [], [], PATIENCE)
    os.close(end)
    assert ready, f"process {pid} has not ended"

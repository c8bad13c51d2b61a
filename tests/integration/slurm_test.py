"""The compile service in jobs of a real Slurm: the job scripts of client/examples/batch on three nodes that share this
host. What a job shows of itself, and that nothing is left of it.

usage: slurm_test.py BIN_DIRECTORY EXAMPLES OPENMPI_CLIENT MPICH_CLIENT
"""
import json
import os
import pathlib
import re
import select
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from slurm import NODES, OPENMPI, PATIENCE, Slurm, enter_namespace, read_to_end, skip  # noqa: E402

BIN, EXAMPLES, OPENMPI_CLIENT, MPICH_CLIENT = sys.argv[1:]
SOURCE = "#include <math.h>\ndouble answer(double x) { return 42.0 * x + cos(0.0) - 1.0; }\n"
FROM_STORE, FROM_DAEMON, COMPILED = 2, 3, 4

# A rank that then tells of its node's daemon, for which `jitc submit` waits as ranks do.
RANK = """#!/bin/sh
"$@" || exit
jitc submit "$(dirname "$0")/other.c" > /dev/null || exit
printf '{"node": "%s", "daemon": "%s", "status": "%s", "stats": %s}\\n' "$SLURMD_NODENAME" "$(jitc daemon status)" \\
  "$(jitc status | grep SLURM | tr '\\n' '|')" "$(jitc stats --json | tr -d '\\n')"
"""
# Whatever else it is asked (its version, to preprocess) it answers as gcc does.
SLOW_COMPILER = """#!/bin/sh
case " $* " in *' -shared '*) ;; *) exec gcc "$@";; esac
echo > {0}/compiling
read line < {0}/go
exec gcc "$@"
"""


class Cluster(Slurm):
    def __init__(self):
        super().__init__()
        self.store = self.scratch / "store"
        self.environment.update(OPENMPI, PATH=f"{BIN}:{self.environment['PATH']}", JITC_STORE=str(self.store))
        self.write("answer.c", SOURCE)
        self.write("other.c", "int other;\n")
        self.rank = self.write("rank.sh", RANK)
        self.slow = self.write("slowcc", SLOW_COMPILER.format(self.scratch))
        for name in ("compiling", "go"):
            os.mkfifo(self.scratch / name)

    def write(self, name, text):
        path = self.scratch / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def words(self):
        """What the jobs' daemons have written."""
        return "\n".join(f"---- {path.name}\n{path.read_text(errors='replace')}" for path in
                         sorted(self.scratch.glob("jitcd-*.log")))

    def expect_nothing_left(self):
        self.wait_for_the_end_of_all()
        directories = [*(self.scratch / "tmp").glob("jitc-*/*"), *(self.scratch / "tmp").glob("jitc-worker-*")]
        assert not directories, f"directories of daemons or workers are left: {directories}\n{self.words()}"
        begun = list(self.store.glob("v1/tmp/*"))
        assert not begun, f"files that were being written are left: {begun}"


def told_by(cluster, text):
    told = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    ranks = [one for one in told if "kind" in one]
    nodes = {one["node"]: one for one in told if "node" in one}
    assert len(ranks) == 1 and ranks[0]["same"] and ranks[0]["kind"] == "OK" and ranks[0]["value"] == 84, \
        (text, cluster.words())
    assert sorted(nodes) == list(NODES), (nodes, text)
    return ranks[0], nodes


def expect_a_daemon_on_each_node(nodes):
    """Three of them though they share a host, each in the directory that has its job's number and its node's name."""
    places = {one["daemon"].split(", ")[-1] for one in nodes.values()}
    assert sorted(place.rsplit(".", 1)[1] for place in places) == list(NODES), nodes
    assert len({place.rsplit(".", 1)[0] for place in places}) == 1, nodes
    assert len({one["daemon"] for one in nodes.values()}) == len(NODES), nodes


def mpich_job(cluster):
    """Cold: one compile for all ranks, and the daemons have found what the job may use."""
    _, output = cluster.batch("--nodes=3", "--ntasks-per-node=2", "--mem=2000", f"{EXAMPLES}/slurm_mpich.sh",
                              cluster.rank, MPICH_CLIENT, "answer.c")
    ranks, nodes = told_by(cluster, read_to_end(output))
    assert ranks["origin"] == COMPILED and ranks["compilers_started"] == 1, ranks
    expect_a_daemon_on_each_node(nodes)
    for one in nodes.values():
        assert "2 compiles  SLURM_CPUS_ON_NODE" in one["status"], one
        assert "SLURM_MEM_PER_NODE (2000 MiB" in one["status"], one
    cluster.expect_nothing_left()


def openmpi_job(cluster):
    """Another job, another MPI: what the first one compiled is in the store that they share."""
    done = cluster.run("salloc", "--nodes=3", "--ntasks-per-node=2", f"{EXAMPLES}/slurm_openmpi.sh", cluster.rank,
                       OPENMPI_CLIENT, "answer.c")
    assert done.returncode == 0, (done.stdout, done.stderr, cluster.words())
    ranks, nodes = told_by(cluster, done.stdout)
    assert ranks["origin"] in (FROM_STORE, FROM_DAEMON) and ranks["compilers_started"] == 0, ranks
    expect_a_daemon_on_each_node(nodes)
    assert all(one["stats"]["compiles_started"] == 0 for one in nodes.values()), nodes
    cluster.expect_nothing_left()


def start_slow_job(cluster, source):
    """A job in the middle of its compile: its number, and what it prints."""
    compiling = os.open(cluster.scratch / "compiling", os.O_RDONLY | os.O_NONBLOCK)
    job, output = cluster.batch("--nodes=1", "--ntasks=2", f"{EXAMPLES}/slurm_mpich.sh", MPICH_CLIENT,
                                cluster.write(source, SOURCE + f"/* {source} */\n"),
                                JITC_COMPILERS=str(cluster.slow), JITC_CC=str(cluster.slow))
    ready, _, _ = select.select([compiling], [], [], PATIENCE)
    os.close(compiling)
    assert ready, (cluster.words(), read_to_end(output))
    return job, output


def cancelled_step(cluster):
    job, output = start_slow_job(cluster, "step.c")
    listed = cluster.run("squeue", "--steps", "--noheader", f"--jobs={job}", "--format=%i %j").stdout
    steps = [line.split()[0] for line in listed.splitlines() if line.split()[1] == pathlib.Path(MPICH_CLIENT).name]
    assert len(steps) == 1, listed
    assert cluster.run("scancel", steps[0]).returncode == 0
    read_to_end(output)
    cluster.expect_nothing_left()


def cancelled_job(cluster):
    job, output = start_slow_job(cluster, "job.c")
    assert cluster.run("scancel", job).returncode == 0
    read_to_end(output)
    cluster.expect_nothing_left()


def late_and_killed_daemon(cluster):
    """Whoever asks in a job waits for its daemon; one that was killed leaves nothing that is in the next one's way."""
    granted = cluster.run("salloc", "--no-shell", "--nodes=1", "--ntasks=1").stderr
    job = re.search(r"Granted job allocation (\d+)", granted)
    assert job, granted
    step = ("srun", f"--jobid={job[1]}", "--overlap")
    asking = {"JITC_AUTOSTART": "0", "JITC_PROGRESS": "1"}

    waiting = cluster.start(*step, "jitc", "submit", "--no-cache", "answer.c", **asking)
    assert any("connecting" in line for line in waiting.stderr)  # srun may say something first
    daemon = cluster.start(*step, "jitcd")  # which stays in the foreground, or Slurm would take the step for done
    assert waiting.wait(PATIENCE) == 0, waiting.communicate()
    (place,) = (cluster.scratch / "tmp").glob("jitc-*/*")
    os.kill(int((place / "jitcd.lock").read_text()), signal.SIGKILL)
    assert daemon.wait(PATIENCE) != 0
    assert (place / "jitcd.sock").exists()

    waiting = cluster.start(*step, "jitc", "submit", "--no-cache", "answer.c", **asking)
    assert any("connecting" in line for line in waiting.stderr)  # srun may say something first
    daemon = cluster.start(*step, "jitcd", "--foreground")
    assert waiting.wait(PATIENCE) == 0, waiting.communicate()

    assert cluster.run("scancel", "--signal=USR1", job[1]).returncode == 0  # as before a job's time is over
    again = cluster.run(*step, "jitc", "submit", "--no-cache", "answer.c", **asking)
    assert again.returncode == 0, again.stderr
    assert cluster.run("scancel", job[1]).returncode == 0
    daemon.communicate(timeout=PATIENCE)
    cluster.expect_nothing_left()


def main():
    enter_namespace()
    if not MPICH_CLIENT:
        skip("MPICH is not installed (mpicxx.mpich)")
    begin = time.monotonic()
    with Cluster() as cluster:
        for scenario in (mpich_job, openmpi_job, late_and_killed_daemon, cancelled_step, cancelled_job):
            print(f"{time.monotonic() - begin:.1f} s: {scenario.__name__}", flush=True)
            scenario(cluster)
        print(f"{time.monotonic() - begin:.1f} s: end", flush=True)


main()

"""A site whose Slurm gives every job its compile service: Prolog, TaskProlog and Epilog of client/examples/batch, from an
installation. The job's script knows nothing of jitc, and nothing is left of the job.

usage: slurm_site_test.py BUILD_DIRECTORY OPENMPI_CLIENT MPICH_CLIENT
"""
import json
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from slurm import NODES, OPENMPI, PATIENCE, Slurm, enter_namespace, read_to_end  # noqa: E402

BUILD, OPENMPI_CLIENT, MPICH_CLIENT = sys.argv[1:]
COMPILED = 4  # jitc_origin
SITE = """Prolog={scratch}/Prolog
TaskProlog={scratch}/prefix/share/jitc/batch/slurm_task_prolog.sh
Epilog={scratch}/Epilog
"""
# What a site's own would add: the disk that jobs have their temporary files on, and here who waits for an Epilog.
AS_ROOT = """#!/bin/sh
had=no
daemon=$(cat {scratch}/tmp/jitc-0/$SLURM_JOB_ID.$SLURMD_NODENAME/jitcd.lock) && had=a
TMPDIR={scratch}/tmp {scratch}/prefix/share/jitc/batch/slurm_{which}.sh
code=$?
left=no
[ $had = no ] || [ ! -e /proc/$daemon/exe ] || left=a
echo "{which} $SLURMD_NODENAME $code: $had daemon, then $left daemon" >> {scratch}/{which}s
"""
SCRIPT = """#!/bin/sh
{} "$@" || exit
srun --ntasks-per-node=1 --ntasks=3 sh -c \\
  'echo "$SLURMD_NODENAME autostart=$JITC_AUTOSTART runtime=$XDG_RUNTIME_DIR $(jitc daemon status)"'
"""
RUNS = {"srun --mpi=pmi2": MPICH_CLIENT, "mpirun.openmpi": OPENMPI_CLIENT}


class Site(Slurm):
    def __init__(self):
        super().__init__(SITE)
        prefix = self.scratch / "prefix"
        subprocess.run(["cmake", "--install", BUILD, "--prefix", str(prefix)], check=True, timeout=PATIENCE,
                       stdout=subprocess.DEVNULL)
        self.environment.update(OPENMPI, PATH=f"{prefix}/bin:{self.environment['PATH']}", XDG_RUNTIME_DIR="/run/user/nobody",
                                JITC_STORE=str(self.scratch / "store"))
        for which in ("prolog", "epilog"):
            self.write(which.capitalize(), AS_ROOT.format(scratch=self.scratch, which=which))
        self.ended = self.scratch / "epilogs"
        os.mkfifo(self.ended)

    def write(self, name, text):
        path = self.scratch / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def epilogs(self, reader):
        """One of each node, with its exit code."""
        lines = ""
        while lines.count("\n") < len(NODES):
            lines += os.read(reader, 1 << 12).decode()
        return sorted(lines.splitlines())


def expect_a_daemon_of_each_node(site, epilogs, run, client):
    """In a job that the command `run` starts; and none when it has ended."""
    name = pathlib.Path(client).name
    site.write(f"{name}.c", f"/* {name} */ double answer(double x) {{ return 42.0 * x; }}\n")
    job, output = site.batch("--nodes=3", "--ntasks-per-node=2", site.write(f"{name}.sh", SCRIPT.format(run)), client,
                             f"{name}.c")
    text = read_to_end(output)
    (ranks,) = (json.loads(line) for line in text.splitlines() if line.startswith("{"))
    assert ranks["kind"] == "OK" and ranks["value"] == 84 and ranks["origin"] == COMPILED, text
    assert ranks["compilers_started"] == 1, text
    told = re.findall(r"^(n\d) autostart=0 runtime= (running, .*)$", text, re.MULTILINE)
    assert sorted(node for node, _ in told) == sorted(NODES), text
    assert len({daemon for _, daemon in told}) == len(NODES), text
    assert all(f"{job}.{node}" in daemon for node, daemon in told), text
    ended = site.epilogs(epilogs)
    assert ended == [f"epilog {node} 0: a daemon, then no daemon" for node in NODES], ended
    site.wait_for_the_end_of_all()
    left = [*(site.scratch / "tmp").glob("jitc-*/*"), *(site.scratch / "tmp").glob("jitc-worker-*")]
    assert not left, left


def main():
    enter_namespace()
    with Site() as site:
        epilogs = os.open(site.ended, os.O_RDWR)  # and its own writer: it has no end between two Epilogs
        for run, client in RUNS.items():
            expect_a_daemon_of_each_node(site, epilogs, run, client)
        os.close(epilogs)
        assert (site.scratch / "prologs").read_text().count(" 0: no daemon") == len(RUNS) * len(NODES)
        assert (site.scratch / "tmp" / "jitc-0").stat().st_mode & 0o777 == 0o700


main()

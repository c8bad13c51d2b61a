#!/usr/bin/env bash
# gate.sh BUILD SCRATCH: the gate under each MPI that is installed. bench.sh has started the daemon.
set -euo pipefail

build=$1
scratch=$2
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cores=$(nproc)
((cores > 1)) || cores=2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# A source that nobody has asked for: fresh FILE.
fresh() { printf '/* %s.%s */\n' "$(date +%s%N)" "$RANDOM" | cat "$scratch/stokes_shared.c" - >"$1"; }

# Calls between the marks of the traces, by what they are; of all ranks together.
calls_between_marks() {
  cat "$@" | awk '
    /jitc-bench-begin/ { counts = 1; next }
    /jitc-bench-end/ { counts = 0; next }
    counts && /^(connect|sendto|sendmsg|recvfrom|recvmsg|socket)\(/ { sockets++; next }
    counts { files++ }
    END { printf "    in 1000 calls on all ranks: %d calls on files, %d on sockets\n", files, sockets }'
}

compile_once() { # RUN RANKS PROGRAM
  fresh "$scratch/gate.c"
  $1 "$2" "$3" once "$scratch/gate.c"
}

measure() { # NAME RUN PROGRAM; RUN takes the number of ranks and the command
  local name=$1 run=$2 program=$3 ranks
  echo "$name"
  fresh "$scratch/gate.c"
  $run "$cores" "$program" warm "$scratch/gate.c" 200
  rm -rf "$scratch/trace"
  mkdir "$scratch/trace"
  $run "$cores" strace -ff -e trace=%file,%network -o "$scratch/trace/log" "$program" marked "$scratch/gate.c" 1000
  calls_between_marks "$scratch/trace"/*
  echo "one call, cold"
  for ranks in 2 4 8; do compile_once "$run" "$ranks" "$program"; done
  echo "one call by a compiler that takes 10 s (target: waiting ranks below 2 %)"
  for ranks in "$cores" 4; do JITC_CC=$scratch/slowcc compile_once "$run" "$ranks" "$program"; done
}

# Where there are cores enough, blocking calls spin, as they do in a solver's job.
with_openmpi() {
  mpirun.openmpi --oversubscribe --bind-to none --mca btl self,vader --mca btl_vader_single_copy_mechanism none \
    --mca mpi_yield_when_idle $(($1 > cores)) -n "$@"
}
with_mpich() { mpiexec.mpich -launcher fork -n "$@"; }

if command -v mpirun.openmpi >/dev/null && [[ -x $build/tests/jitc-bench-gate ]]; then
  measure "Open MPI" with_openmpi "$build/tests/jitc-bench-gate"
fi
if command -v mpicxx.mpich >/dev/null; then
  # As a solver is built: by its MPI's own compiler, with jitc's headers and the one libjitc.
  mpicxx.mpich -std=c++23 -O2 -I"$root" -I"$root/client/include" -o "$scratch/gate-mpich" "$root/tests/bench/gate.cc" \
    -L"$build/lib" -ljitc -Wl,-rpath,"$build/lib"
  measure MPICH with_mpich "$scratch/gate-mpich"
fi

#!/usr/bin/env bash
# The demo: a nonlinear Stokes solver under mpirun whose pointwise functions are compiled while it runs.
#   run 1, cold: nobody knows the functions; one compiler starts, for all ranks
#   run 2, warm: the same processes ask again; they hold the functions
#   run 3: another job; it finds them in the store
# Then a viscoplastic material, whose Jacobian differentiates the viscosity (Newton) or holds it fixed (Picard): the same
# problem but for one word, and the same solution in more steps.
# Usage: demo.sh BUILD_DIRECTORY [RANKS]. Ends with 0 when all of that happened and every solve passed its checks.
set -euo pipefail

die() {
  echo "demo: $*" >&2
  exit 1
}

[[ $# -eq 1 || $# -eq 2 ]] || die "usage: demo.sh BUILD_DIRECTORY [RANKS]"
build=$(cd "$1" && pwd) || die "there is no directory $1: build first"
ranks=${2:-4}
jitc=$build/bin/jitc
stokes=$build/bin/stokes
[[ -x $jitc ]] || die "there is no $jitc: build first"
[[ -x $stokes ]] || die "there is no $stokes: it is built where MPI and PETSc were found at configure time"

work=$build/demo
log=$work/demo.log
unset "${!JITC_@}" # the user's settings would make a cold start warm, or another program
export JITC_STORE=$work/store
export JITC_RUNTIME_DIR=$work/run

stop_daemon() {
  "$jitc" daemon stop || echo "demo: the daemon did not stop; its runtime directory is $JITC_RUNTIME_DIR" >&2
}
# A demo that was killed may have left its daemon behind.
if [[ -S $JITC_RUNTIME_DIR/jitcd.sock ]]; then stop_daemon; fi
rm -rf "$work"
mkdir -p "$work"
mkdir -m 700 "$JITC_STORE"

started=
scratch=
clean_up() {
  [[ -z $started ]] || stop_daemon
  [[ -z $scratch ]] || rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# A socket's path holds at most 107 bytes.
if [[ $(printf %s "$JITC_RUNTIME_DIR/jitcd.sock" | wc -c) -le 107 ]]; then
  mkdir -m 700 "$JITC_RUNTIME_DIR"
else
  scratch=$(mktemp -d)
  export JITC_RUNTIME_DIR=$scratch
  echo "the build directory's path is too long for a socket: the daemon's runtime directory is $scratch"
fi
started=yes
"$jitc" daemon start

# For OpenMPI (others ignore them): more ranks than cores, waiting ranks give theirs up, root inside a container, which
# may also forbid copies between processes.
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none
if [[ $(id -u) -eq 0 ]]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
# Of the MPI that the solver was built with; plain mpirun may be another's.
mpirun=$(sed -n 's/^MPIEXEC_EXECUTABLE:[A-Z]*=//p' "$build/CMakeCache.txt")
[[ -x $mpirun ]] || die "$build/CMakeCache.txt names no mpiexec: configure again"

solve() {
  echo
  echo "\$ mpirun -n $ranks stokes $*"
  timeout --foreground 300 "$mpirun" -n "$ranks" "$stokes" "$@" </dev/null
}
solve -runs 2 | tee "$log" || die "the first job failed"
solve -runs 1 | tee -a "$log" || die "the second job failed"

plastic=$work/plastic.log
for tangent in newton picard; do
  solve -rheology viscoplastic -tangent "$tangent" -refinements 1 | tee -a "$plastic" || die "the $tangent job failed"
done

expect() {
  local found
  found=$(grep "^$1: " "$log" | cut -d ' ' -f "$2-" | paste -s -d ';')
  [[ $found == "$3" ]] || die "'$1' should read '$3' in the three runs and reads '$found'"
}
expect "compilers started" 3 "1;0;0"
expect "pointwise functions" 3 "memory miss, store miss, daemon miss;memory hit;memory miss, store hit"

echo
echo "summary: $ranks ranks"
awk '
  BEGIN { split("cold;warm;second job", names, ";") }
  /^compilers started: / { ++run; compilers[run] = $3 }
  /^function pointers: / { pointers[run] = $4 }
  /^solve: / { solve[run] = $2 }
  /^ +[0-9]+ / { cells = $1; velocity = $6; pressure = $8 }
  END {
    for (run = 1; run <= 3; ++run)
      printf "  %-10s  compilers %d   function pointers after %9.6f s   solve %6.2f s\n",
             names[run], compilers[run], pointers[run], solve[run]
    printf "  observed order on %d x %d cells: velocity %s (Q2: 3), pressure %s (Q1: 2)\n",
           cells, cells, velocity, pressure
  }' "$log"
awk '
  /^ +cells +/ { tangent = $2 }
  /^ +[0-9]+ / { steps[tangent] = $2; cells = $1; error[tangent] = $5 }
  END {
    printf "  viscoplastic on %d x %d cells: Newton %d steps, Picard %d, velocity error %s and %s\n",
           cells, cells, steps["Newton"], steps["Picard"], error["Newton"], error["Picard"]
    exit !(steps["Newton"] > 0 && steps["Newton"] < steps["Picard"])
  }' "$plastic" || die "Newton did not need fewer steps than Picard"

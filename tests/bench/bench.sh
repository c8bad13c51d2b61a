#!/usr/bin/env bash
# bench.sh BUILD [cold|hits|herd|memory|graph|gate|all|node|prediction|scale|store [ARTIFACTS]]: measurements with a daemon
# of their own, beside gcc, ccache, SymPy and MPI. `node` (a quarter of an hour), `prediction` and `store` (minutes) are
# not among `all`.
# `scale` measures nothing: it simulates, and writes docs/scale.md and its plots.
set -euo pipefail

build=$1
name=${2:-all}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
corpus=$here/../data/corpus
if [[ $name == scale ]]; then
  exec /usr/bin/python3 "$here/scale.py" --write "$here/../../docs"
fi
scratch=$(mktemp -d "${TMPDIR:-/tmp}/jitc-bench.XXXXXX")
unset "${!JITC_@}" # only what stands here is measured
export JITC_RUNTIME_DIR=$scratch/run JITC_STORE=$scratch/store CCACHE_DIR=$scratch/ccache

finish() {
  "$build/bin/jitc" daemon stop >/dev/null 2>&1 || true
  rm -rf "$scratch"
}
trap finish EXIT

if [[ $name == prediction ]]; then
  /usr/bin/python3 "$here/prediction.py" "$build/bin" "$scratch"
  exit
fi

machine() {
  printf '%s, %s processors, %s; load %s\n' "$(uname -sr)" "$(nproc)" "$(gcc --version | head -n 1)" "$(cut -d' ' -f1-3 /proc/loadavg)"
}

if [[ $name == store ]]; then
  machine
  "$build/tests/jitc-bench" store "$build/bin" "$scratch" "${3:-100000}"
  machine
  exit
fi

/usr/bin/python3 "$here/share.py" "$corpus/vp_stokes_3d" >"$scratch/stokes_shared.c"
gunzip -c "$corpus/level_sets_16/tree.c.gz" >"$scratch/level_sets_16.c"
cp "$corpus/vp_stokes_3d/tree.c" "$scratch/vp_stokes_3d.c"
if [[ $name == all || $name == hits ]] && ! command -v ccache >/dev/null; then
  echo "bench: ccache, the peer of 'hits', is missing: apt-get install ccache" >&2
  exit 1
fi

if [[ $name == all || $name == graph ]]; then
  /usr/bin/python3 "$here/../peers/sympy_rheology.py" "$scratch/sympy"
fi

machine
case $name in
  all) names=(cold hits herd memory graph gate) ;; # node takes a quarter of an hour: by name only
  node)
    names=(node jitter)
    export JITC_MEMORY_BUDGET=1200M
    ;;
  *) names=("$name") ;;
esac
# Compiles as gcc does, ten seconds later.
cat >"$scratch/slowcc" <<'END'
#!/bin/sh
case " $* " in *' -shared '*) sleep 10 ;; esac
exec gcc "$@"
END
chmod +x "$scratch/slowcc"
JITC_COMPILERS=$scratch/slowcc "$build/bin/jitc" daemon start >/dev/null
for each in "${names[@]}"; do
  case $each in
    gate) bash "$here/gate.sh" "$build" "$scratch" ;;
    *) "$build/tests/jitc-bench" "$each" "$build/bin" "$scratch" ;;
  esac
done

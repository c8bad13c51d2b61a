#!/usr/bin/env bash
# bench.sh BUILD [cold|hits|herd|memory|graph|all]: measurements with a daemon of their own, beside gcc, ccache and SymPy.
set -euo pipefail

build=$1
name=${2:-all}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
corpus=$here/../data/corpus
scratch=$(mktemp -d "${TMPDIR:-/tmp}/jitc-bench.XXXXXX")
unset "${!JITC_@}" # only what stands here is measured
export JITC_RUNTIME_DIR=$scratch/run JITC_STORE=$scratch/store CCACHE_DIR=$scratch/ccache

finish() {
  "$build/bin/jitc" daemon stop >/dev/null 2>&1 || true
  rm -rf "$scratch"
}
trap finish EXIT

/usr/bin/python3 "$here/share.py" "$corpus/vp_stokes_3d" >"$scratch/stokes_shared.c"
gunzip -c "$corpus/level_sets_16/tree.c.gz" >"$scratch/level_sets_16.c"
if [[ $name == all || $name == hits ]] && ! command -v ccache >/dev/null; then
  echo "bench: ccache, the peer of 'hits', is missing: apt-get install ccache" >&2
  exit 1
fi

if [[ $name == all || $name == graph ]]; then
  /usr/bin/python3 "$here/../peers/sympy_rheology.py" "$scratch/sympy"
fi

printf '%s, %s processors, %s; load %s\n' "$(uname -sr)" "$(nproc)" "$(gcc --version | head -n 1)" "$(cut -d' ' -f1-3 /proc/loadavg)"
"$build/bin/jitc" daemon start >/dev/null
if [[ $name == all ]]; then
  names=(cold hits herd memory graph)
else
  names=("$name")
fi
for each in "${names[@]}"; do
  "$build/tests/jitc-bench" "$each" "$build/bin" "$scratch"
done

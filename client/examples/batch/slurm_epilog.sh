#!/bin/sh
# Epilog= of slurm.conf, as root on each node when a job has ended: ends the job's daemon, however it was started, with
# all that it compiles, and removes its directory.
PATH=${PATH:-/usr/bin:/bin}:$(dirname "$0")/../../../bin
export PATH
export JITC_RUNTIME_DIR="${TMPDIR:-/tmp}/jitc-$SLURM_JOB_UID/$SLURM_JOB_ID.$SLURMD_NODENAME"
# By the user's own rights: below a directory of the user's, root follows no link and ends no process of others.
# shellcheck disable=SC2016
setpriv --reuid="$SLURM_JOB_UID" --regid="$(id -g "$SLURM_JOB_UID")" --clear-groups sh -c '
  cd / || exit
  [ -d "$JITC_RUNTIME_DIR" ] || exit
  jitc daemon stop
  rm -rf "$JITC_RUNTIME_DIR"
' </dev/null >/dev/null 2>&1
exit 0 # an Epilog that fails drains the node

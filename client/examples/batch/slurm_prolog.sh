#!/bin/sh
# Prolog= of slurm.conf, as root on each node of a job: makes the directory below which the user's daemons have theirs,
# before somebody else takes its name. Not needed where each job has a temporary directory of its own.
umask 077
directory=${TMPDIR:-/tmp}/jitc-$SLURM_JOB_UID
if mkdir "$directory" 2>/dev/null; then
  chown "$SLURM_JOB_UID:$(id -g "$SLURM_JOB_UID")" "$directory"
fi
exit 0 # a Prolog that fails drains the node

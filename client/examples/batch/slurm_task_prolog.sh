#!/bin/sh
# TaskProlog= of slurm.conf, as the user before each task: every node of a step has a compile service before the ranks
# begin, and no job script must start one. slurm_epilog.sh ends it, or the step does where its control group ends all.
echo "unset XDG_RUNTIME_DIR"    # of a login session, which the nodes of a job need not have
echo "export JITC_AUTOSTART=0"  # what ranks or commands started would end with their step
unset XDG_RUNTIME_DIR
PATH=${PATH:-/usr/bin:/bin}:$(dirname "$0")/../../../bin
export PATH
if [ "$SLURM_LOCALID" = 0 ]; then
  jitcd --idle-exit "${JITC_IDLE_EXIT:-0}" </dev/null >/dev/null || echo "print jitcd does not start on $(hostname)"
fi
exit 0

#!/bin/bash
# A program of OpenMPI with a compile service on each node of its job:
#   sbatch --nodes=4 --ntasks-per-node=16 slurm_openmpi.sh ./solver -options
#   salloc --nodes=4 --ntasks-per-node=16 ./slurm_openmpi.sh ./solver -options
# The service ends with the job. Ranks that are faster than it wait for it.
set -euo pipefail

export JITC_AUTOSTART=0  # a daemon that a command started would end with that command's step
unset XDG_RUNTIME_DIR    # of a login session, which the nodes of a job need not have

srun --overlap --input=none --cpu-bind=none --output=jitcd-%j-%N.log --nodes="$SLURM_JOB_NUM_NODES" \
  --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 jitcd --foreground &

mpirun "$@"

#!/usr/bin/env bash
# Usage: slurm.sh CITY INPUT...   (CITY on a file system that all nodes see)
set -euo pipefail
city=$1
shift
plan=$(sbatch --parsable --wrap "citysplat plan '$city' $(printf "'%s' " "$@")")
# Ends ten minutes before the limit; 75 and 130 are requeued, work that was done is kept.
work=$(sbatch --parsable --dependency=afterok:"$plan" --kill-on-invalid-dep=yes --array=1-16 --requeue --time=01:00:00 --cpus-per-task=8 \
    --wrap "citysplat work '$city' --for 50m --threads 8 || { code=\$?; \
            case \$code in 74|75|130) scontrol requeue \$SLURM_JOB_ID ;; esac; exit \$code; }")
# Whatever became of single workers: publish says what is missing (75), and others may have done it.
sbatch --dependency=afterany:"$work" --wrap "citysplat publish '$city'"

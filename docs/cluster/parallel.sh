#!/usr/bin/env bash
# Usage: parallel.sh CITY WORKERS INPUT...   (GNU parallel; --sshlogin adds hosts)
set -euo pipefail
city=$1 workers=$2
shift 2
citysplat plan "$city" "$@"
seq "$workers" | parallel --retries 3 -N0 -j "$workers" citysplat work "$city" --threads 1
citysplat publish "$city"

#!/usr/bin/env bash
# The tables of Open MPI, MPICH and Slurm name every flag of the --help of the real launcher, if it is here. Usage: mpi_help.sh
# FLEET_MPIRUN, FLEET_MPIEXEC and FLEET_SRUN choose other programs.
set -euo pipefail
export LC_ALL=C OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cd "$(dirname "${BASH_SOURCE[0]}")"

flags_of_open_mpi() { command "${FLEET_MPIRUN:-mpirun.openmpi}" --help unsupported | sed -nE 's/^ *(-[^ ]*).*/\1/p' | tr '|' '\n'; }
flags_of_hydra() { command "${FLEET_MPIEXEC:-mpiexec.hydra}" --help | sed -nE 's/^    (-[^ ]*).*/\1/p' | tr '/' '\n'; }
flags_of_srun() {
  command "${FLEET_SRUN:-srun}" --help | grep -oE '^ +(-[A-Za-z],? +)?--[a-z0-9-]+' | grep -oE -- '-[A-Za-z0-9-]+'
}

compared=0 missing=0
for table in open_mpi hydra srun; do
  flags=$("flags_of_$table" 2>/dev/null | sort -u) || true
  [ -n "$flags" ] || { echo "$table: the launcher is not installed, or has no configuration"; continue; }
  compared=$((compared + 1))
  for flag in $(comm -23 <(echo "$flags") <(tr -s ' (),.=' '\n' <"$table.txt" | sort -u)); do
    echo "$table.txt lacks $flag"
    missing=$((missing + 1))
  done
done
[ "$missing" = 0 ] || exit 1
[ "$compared" -gt 0 ] || { echo "SKIP: none of mpirun (openmpi-bin), mpiexec.hydra (mpich) and srun (slurm-client) is here"; exit 77; }

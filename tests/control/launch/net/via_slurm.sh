#!/usr/bin/env bash
# --via=slurm with a srun that starts its tasks in two network namespaces: one command starts the job, its exit code is
# the job's, the verdict is told once, and a signal to it ends all. Usage: via_slurm.sh FLEETRUN HELPER
set -euo pipefail
fleetrun=$1 helper=$2
source "$(dirname "$0")/two_nodes.sh"

# As Slurm's: a task in each node with the step's variables and what comes on standard input, the highest exit code.
mkdir bin
cat >bin/srun <<SRUN
#!/usr/bin/env bash
[[ "\$*" == --nodes=2\ --ntasks=2\ --ntasks-per-node=1\ * ]] || { echo "srun: \$*"; exit 9; }
while [[ \$1 == --* ]]; do shift; done
export SLURM_STEP_ID=0 SLURM_STEP_NODELIST=10.77.0.1,10.77.0.2 SLURM_STEP_NUM_NODES=2 SLURM_STEP_NUM_TASKS=2
mkfifo in.\$\$.0 in.\$\$.1
SLURM_NODEID=0 ip netns exec $a "\$@" <in.\$\$.0 & first=\$!
SLURM_NODEID=1 ip netns exec $b "\$@" <in.\$\$.1 & second=\$!
exec 3<&0
tee in.\$\$.0 >in.\$\$.1 <&3 & exec 3<&- <&-
code=0
for task in \$first \$second; do
  one=0; wait \$task || one=\$?
  [ \$one -le \$code ] || code=\$one
done
exit \$code
SRUN
chmod +x bin/srun
allocation=(SLURM_JOB_ID=$$ SLURM_JOB_NODELIST=n[1-2] SLURM_JOB_NUM_NODES=2 PATH="$folder/bin:$PATH" CUDA_VISIBLE_DEVICES=)

env "${allocation[@]}" "$fleetrun" --via=slurm --table=auto --nproc_per_node=2 "$helper" store >met.out 2>&1 || fail "ended with $?"
expect met.out '\[rank 2 10.77.0.2\]'
[ "$(grep -c "launch train in CPU mode" met.out)" = 1 ] || fail "the job is not shown once"
echo "met"

code=0
env "${allocation[@]}" PADDLE_NPROC_PER_NODE=2 "$fleetrun" --via=slurm \
  sh -c 'test $RANK = 3 && { sleep 0.2; exit 7; }; exec sleep 100' >failed.out 2>&1 || code=$?
[ $code = 7 ] || fail "ended with $code instead of 7"
[ "$(grep -c "rank 3 of 4 exited with 7" failed.out)" = 1 ] || fail "the verdict is not told once"
[ "$(grep -c "4 ranks on 2 nodes" failed.out)" = 1 ] || fail "the start is not told once"
expect failed.out "local rank 1 on node 1 (10.77.0.2"
echo "the failing rank's code, its verdict once"

env "${allocation[@]}" "$fleetrun" --via=slurm --nproc_per_node=2 \
  sh -c ': >ready.$RANK; while :; do sleep 0.05; done' >stopped.out 2>&1 & job=$!
for rank in 0 1 2 3; do await_file ready.$rank; done
kill -TERM $job
code=0; wait $job || code=$?
[ $code = 143 ] || fail "ended with $code instead of 143"
for n in "$a" "$b"; do [ -z "$(ip netns pids "$n")" ] || fail "something is left in $n"; done
echo "a signal to it ends all"

rm -f ready.*
env "${allocation[@]}" "$fleetrun" --via=slurm --nproc_per_node=2 \
  sh -c ': >ready.$RANK; while :; do sleep 0.05; done' >killed.out 2>&1 & job=$!
for rank in 0 1 2 3; do await_file ready.$rank; done
kill -KILL $job
all_gone() { [ -z "$(ip netns pids "$a")$(ip netns pids "$b")" ]; }
soon "the job outlives the launcher" all_gone
echo "killed with -9, it leaves nothing"

code=0
"$fleetrun" --via=slurm true >outside.out 2>&1 || code=$?
[ $code = 2 ] || fail "outside of an allocation: $code"
expect outside.out "fleetrun does not run in a Slurm allocation"

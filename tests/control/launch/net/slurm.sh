#!/usr/bin/env bash
# A real Slurm of three nodes on this host: munged, slurmctld and three slurmd, with folders, ports and addresses of their own
# in a network namespace. Jobs run as people submit them. Usage: slurm.sh FLEETRUN HELPER [PART...], all parts by default
set -euo pipefail
fleetrun=$(realpath "$1") helper=$(realpath "$2")
source "$(dirname "$0")/../../../hosts.sh"
for tool in munged slurmctld slurmd srun; do
  PATH=$PATH:/usr/sbin command -v $tool >/dev/null || skip "$tool is missing; install munge, slurmctld, slurmd and slurm-client"
done
PATH=$PATH:/usr/sbin
new_host net
mkdir -p "/etc/netns/$net"
echo "127.0.0.1 localhost" >"/etc/netns/$net/hosts"
for n in 1 2 3; do
  ip -n "$net" addr add "10.78.0.$n/24" dev lo
  echo "10.78.0.$n n$n" >>"/etc/netns/$net/hosts"
done
echo "10.78.0.1 $(hostname -s)" >>"/etc/netns/$net/hosts"

export SLURM_CONF=$folder/slurm.conf HOME=$folder FLEET_RUNTIME_DIR=$folder/run FLEET_JOB_SECRET=0123456789abcdef
export CUDA_VISIBLE_DEVICES='' F=$fleetrun H=$helper
# cred_expire: how long a requeued job waits. KillWait: from SIGTERM to SIGKILL.
cat >slurm.conf <<CONF
ClusterName=fleet
SlurmctldHost=$(hostname -s)(10.78.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket,cred_expire=5
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool.%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MailProg=/bin/true
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,bf_interval=1
SlurmdParameters=config_overrides
SlurmctldParameters=idle_on_node_suspend
ReturnToService=2
KillWait=10
NodeName=n[1-3] NodeHostname=$(hostname -s) NodeAddr=10.78.0.[1-3] Port=[7001-7003] CPUs=64
PartitionName=all Nodes=ALL Default=YES MaxTime=UNLIMITED State=UP
CONF
echo "CgroupPlugin=cgroup/v1" >cgroup.conf  # loaded always, and not used; the version that is found would need a mount
slurm() { ip netns exec "$net" "$@"; }
start_slurm() {
  head -c 1024 /dev/urandom >munge.key && chmod 400 munge.key
  slurm munged --foreground --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" \
    --pid-file="$folder/munge.pid" --log-file="$folder/munge.log" --seed-file="$folder/munge.seed" >munged.out 2>&1 &
  await_file munge.socket
  mkdir state spool.n1 spool.n2 spool.n3
  slurm slurmctld -D -c >slurmctld.out 2>&1 &
  for n in 1 2 3; do slurm slurmd -D -N n$n >slurmd$n.out 2>&1 & done
  soon "the nodes of Slurm are not idle" all_idle
}
all_idle() {
  [ "$(jobs -pr | wc -l)" = 5 ] || fail "a daemon of Slurm has ended"
  [ "$(slurm sinfo -h -o '%T %D' 2>/dev/null)" = "idle 3" ]
}

# submit NAME COMMAND [OPTION...]: a batch job. Its output is in NAME.out, the exit code of COMMAND in NAME.code, its id in $job.
submit() {
  job=$(slurm sbatch --parsable --job-name="$1" --output="$1.out" "${@:3}" --wrap "$2
echo \$? >$1.code")
}
ended() {  # ended NAME CODE
  soon "$1 has not ended" test -s "$1.code"
  [ "$(cat "$1.code")" = "$2" ] || fail "$1 ended with $(cat "$1.code") instead of $2"
}
log_of() { echo "log/slurm-$job.0/node$1/workerlog.0"; }  # log_of NODE: of the first step of $job
one_a_node=(--nodes=2 --ntasks-per-node=1)

# Ranks.
cat >until_signal.sh <<'RANK'
trap "echo saved >saved.$2.$RANK; exit 0" "$1"
: >ready.$2.$RANK
while :; do sleep 0.1; done
RANK
cat >twice.sh <<'RANK'
echo "start ${SLURM_RESTART_COUNT:-0}"
[ -z "${SLURM_RESTART_COUNT:-}" ] || exit 0
: >ready.twice.$RANK
exec sleep 100
RANK
cat >until_go.sh <<'RANK'
echo $$ >pid.$RANK.part && mv pid.$RANK.part pid.$RANK
until [ -e go ]; do sleep 0.1; echo; done
RANK
cat >elastic.sh <<'RANK'
echo "$RANK of $WORLD_SIZE"
: >ready.elastic.$WORLD_SIZE.$RANK
[ "$WORLD_SIZE" = 2 ] || exec sleep 100
RANK
cat >with_pid.sh <<'TASK'
echo $$ >task.$SLURM_NODEID.part && mv task.$SLURM_NODEID.part task.$SLURM_NODEID
exec "$@"
TASK
# torchrun's recipe. The nodes share this host, so each names its address.
cat >recipe.sh <<'TASK'
exec $F -q --nnodes=2 --rdzv_backend=c10d --rdzv_endpoint=n1:29500 --local_addr=n$((SLURM_NODEID + 1)) $H store
TASK
cat >heterogeneous.sh <<'SCRIPT'
#!/bin/sh
srun --het-group=0,1 $F -q true >spans.out 2>&1; echo $? >spans.code
$F -q --via=slurm true >het_via.out 2>&1; echo $? >het_via.code
srun --het-group=1 --ntasks=2 $F -q $H store >component.out 2>&1; echo $? >component.code
SCRIPT

# --- what waits for Slurm's own clock is started first ---

start_limit() {  # a minute never has more than 60 s left, so the signal comes with the next look of Slurm, within 30 s
  for signal in TERM USR1; do
    submit limit_$signal "srun \$F -q sh until_signal.sh $signal limit_$signal" "${one_a_node[@]}" --time=1 --signal=$signal@60
  done
}
check_limit() {
  for signal in TERM USR1; do
    soon "limit_$signal has not ended" test -s limit_$signal.code  # with 143, or 0 if the ranks were faster
    for rank in 0 1; do [ -e saved.limit_$signal.$rank ] || fail "rank $rank got no SIG$signal"; done
  done
  echo "time limit: its signals reach the ranks"
}

start_heterogeneous() {
  slurm sbatch --output=heterogeneous.out --nodes=1 : --nodes=2 heterogeneous.sh >submitted.out
}
check_heterogeneous() {
  ended component 0
  expect component.out "sum 1"
  ended spans 2
  expect spans.out "heterogeneous"
  ended het_via 2
  expect het_via.out "heterogeneous"
  echo "heterogeneous job: one component is a job, several are refused"
}

start_requeue() {
  submit requeue 'srun $F -q sh twice.sh' "${one_a_node[@]}" --requeue --open-mode=append
  requeued=$job
  await_file ready.twice.0
  await_file ready.twice.1
  slurm scontrol requeue "$requeued"
}
check_requeue() {
  ended requeue 0
  for node in 0 1; do
    job=$requeued
    expect "$(log_of $node)" "start 0"
    expect "$(log_of $node)" "start 1"
  done
  echo "requeue: the same job runs again, and its logs continue"
}

stopped() { grep -q '^State:.T' "/proc/$1/status"; }
start_suspend() {  # for longer than the limits of the job. Slurm stops the ranks 2 s before fleetrun
  submit suspend 'srun $F -q --heartbeat_timeout=4 --hang_timeout=4 --grace=2 sh until_go.sh' "${one_a_node[@]}"
  suspended=$job
  await_file pid.0
  await_file pid.1
  slurm scontrol suspend "$suspended"
  for rank in 0 1; do soon "rank $rank is not suspended" stopped "$(cat pid.$rank)"; done
  resume_at=$((SECONDS + 7))
}
past() { [ "$SECONDS" -ge "$1" ]; }
check_suspend() {
  soon "the time of the suspension does not pass" past "$resume_at"
  for rank in 0 1; do stopped "$(cat pid.$rank)" || fail "rank $rank runs while the job is suspended"; done
  slurm scontrol resume "$suspended"
  : >go
  ended suspend 0
  echo "suspend, resume: no limit counts the time"
}

# --- the others, one after the other ---

check_srun() {
  slurm srun --nodes=2 --ntasks=2 bash -c 'echo $SLURM_JOB_ID >srun.job; exec $F -q --nproc_per_node=2 $H store' >srun.out 2>&1 ||
    fail "srun ended with $?"
  job=$(cat srun.job)
  expect "$(log_of 0)" "sum 14"
  expect "$(log_of 1)" "sum 14"
  submit recipe 'srun sh recipe.sh' "${one_a_node[@]}" --nodelist='n[1-2]'
  ended recipe 0
  expect "$(log_of 0)" "sum 1"
  expect "$(log_of 1)" "sum 1"
  echo "srun: its nodes are one job, with a log folder each"
}

check_tasks() {
  submit tasks 'srun --ntasks-per-node=1 $F -q true' --nodes=2 --ntasks-per-node=4
  ended tasks 2
  local line
  line=$(sed -n 's/.*start one per node with \(srun .*\) fleetrun --nproc.*/\1/p' tasks.out | head -n 1)
  submit line "$line \$F -q \$H store" --nodes=2 --ntasks-per-node=4
  ended line 0
  expect "$(log_of 1)" "sum 1"
  echo "--ntasks-per-node: the line of the message works"
}

check_via() {
  submit via '$F -q --via=slurm --nproc_per_node=2 $H store' --nodes=2 --ntasks-per-node=4
  ended via 0
  expect via.out '\[rank 2 n.\] sum 14'
  submit counted '$F -q --nnodes=2 $H store' --nodes=2
  ended counted 0
  expect counted.out '\[rank 1 n.\] sum 1'
  submit range '$F -q --nnodes=2:3 $H store' --nodes=2
  ended range 0
  expect range.out '\[rank 1 n.\] sum 1'
  echo "--via=slurm, or a number of nodes: one command for all nodes"
}

check_salloc() {
  local code=0
  slurm salloc --nodes=2 "$F" -q --via=slurm sh -c 'test $RANK = 1 && exit 7; exec sleep 100' >salloc.out 2>&1 || code=$?
  [ $code = 7 ] || fail "salloc ended with $code instead of 7"
  expect salloc.out "rank 1 of 2 exited with 7"
  echo "salloc: the exit code of the job"
}

check_unused() {
  submit unused '$F -q -n 4 true' --nodes=2
  ended unused 0
  expect unused.out "--via=slurm"
  [ -e "log/slurm-$job/workerlog.3" ] || fail "the four ranks have no logs in log/slurm-$job"
  submit one '$F -q --nnodes=1 true' --nodes=2
  ended one 0
  [ ! -s one.out ] || fail "one node was asked for, and there is a line"
  echo "unused nodes: a line, unless one node was asked for"
}

ran() { [ "$(grep -lx "task $1" log/slurm-*/workerlog.0 2>/dev/null | wc -l)" = 1 ]; }
check_array() {
  slurm sbatch --output=array.out --array=0-2 --wrap '$F -q sh -c "echo task $SLURM_ARRAY_TASK_ID"' >submitted.out
  for task in 0 1 2; do soon "task $task of the array did not run" ran $task; done
  ! grep -c task log/slurm-*/workerlog.0 | grep -qv ':[01]$' || fail "tasks of the array share a log"
  echo "array: a log folder for each task"
}

check_cancel() {
  submit cancel '$F -q --via=slurm sh until_signal.sh TERM cancel' --nodes=2
  await_file ready.cancel.0
  await_file ready.cancel.1
  slurm scancel "$job"
  await_file saved.cancel.0
  await_file saved.cancel.1
  echo "scancel: the ranks get SIGTERM"
}

check_elastic() {
  submit elastic 'srun --no-kill --kill-on-bad-exit=0 --wait=0 sh with_pid.sh $F -q --nnodes=2:3 --elastic_timeout=1 sh elastic.sh' \
    --nodes=3 --ntasks-per-node=1
  for rank in 0 1 2; do await_file ready.elastic.3.$rank; done
  kill -KILL "$(cat task.2)"
  ended elastic 137  # srun's code is the highest
  for rank in 0 1; do [ -e ready.elastic.2.$rank ] || fail "rank $rank did not run again"; done
  expect "$(log_of 1)" "1 of 2"
  echo "elastic: the job continues without the node that is lost"
}

others() {
  local pid
  for pid in $(ip netns pids "$net"); do cat "/proc/$pid/comm" 2>/dev/null; done | grep -vE '^(munged|slurmctld|slurmscriptd|slurmd)$'
}
none_left() { [ -z "$(others)" ]; }

start_slurm
echo "three nodes are idle after $SECONDS s"
parts=("${@:3}")
[ ${#parts[@]} -gt 0 ] || parts=(srun tasks via salloc unused array cancel elastic suspend requeue heterogeneous limit)
for part in limit heterogeneous requeue suspend; do
  [[ " ${parts[*]} " != *" $part "* ]] || "start_$part"
done
for part in "${parts[@]}"; do "check_$part"; done
soon "jobs left processes: $(others)" none_left
echo "nothing is left after $SECONDS s"

#!/usr/bin/env python3
"""Runs the command lines of lines.txt with programs that stand in for the real ones, and looks at what their ranks see.

    lines.py test FLEETRUN           under fleetrun, called by both of its names, against golden.json; 77: skipped
    lines.py golden PYTHON [N...]    makes golden.json (or those entries anew) with the torchrun of PYTHON's torch

A rank's variables must be those that torchrun sets, but for addresses, ports, paths, ids and those that docs/explanation/differences/torchrun.md names.
"""

import concurrent.futures
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TIMEOUT = 240  # seconds: against hanging

# The same for every line; NODE and PORT are filled in.
VALUES = {
    "GPUS_PER_NODE": "2", "SLURM_GPUS_PER_TASK": "2", "NUM_PROC": "2", "NUM_TRAINERS": "2", "NGPU": "4", "num_gpus": "2",
    "LOG_RANK": "0", "MODULE": "llama3", "CONFIG": "llama3_debugmodel", "WANDB_RUN": "dummy", "AMP": "true",
    "BATCH_SIZE": "240", "TORCHFT_LIGHTHOUSE": "http://localhost:29510", "overrides": "", "CHECKPOINT": "model.pt",
    "CHECKPOINT_PATH": "checkpoints", "MODEL": "Qwen-7B", "DATA": "data.json", "OUTPUT": "out", "JOB_ID": "job-17",
    "SLURM_JOB_ID": "4711", "SLURM_JOBID": "4711", "SLURM_JOB_NODELIST": "localhost", "TORCHRUN_LOG_DIR": "torchrun_logs",
    "NNODES": "{nodes}", "NUM_NODES": "{nodes}", "SLURM_NNODES": "{nodes}", "BEAKER_REPLICA_COUNT": "{nodes}",
    "NODE_RANK": "{node}", "SLURM_PROCID": "{node}", "BEAKER_REPLICA_RANK": "{node}", "RANK": "{node}",
    "MASTER_ADDR": "127.0.0.1", "head_node_ip": "127.0.0.1", "BEAKER_LEADER_REPLICA_HOSTNAME": "localhost",
    "MASTER_PORT": "{port}", "port_number": "{port}", "HOST_NODE_ADDR": "127.0.0.1:{port}",
    "HOSTE_NODE_ADDR": "127.0.0.1:{port}", "RDZV_ENDPOINT": "127.0.0.1:{port}",
}
# Not compared: of the shell, the machine and this test.
OWN = {"_", "SHLVL", "PWD", "OLDPWD", "LINES_OUT", "LINES_NODE", "__CF_USER_TEXT_ENCODING", "LC_CTYPE"}
# Differ by nature; a rank must have them.
PLACES = {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_ERROR_FILE", "TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RUN_ID"}

ALWAYS = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}

# Every python of a rank tells what it sees, whatever it runs.
RECORDER = """
import json, os, sys

def record():
    if "LOCAL_RANK" not in os.environ or "LINES_OUT" not in os.environ:
        return
    name = os.environ["LINES_OUT"] + "/" + os.environ.get("RANK", "x") + "." + str(os.getpid())
    with open(name + ".part", "w") as file:
        json.dump({"env": dict(os.environ), "argv": sys.orig_argv[1:]}, file)
    os.rename(name + ".part", name + ".json")

record()
"""
# --run-path of torchrun has no python of its own for a rank.
SCRIPT = "import sitecustomize\nsitecustomize.record()\n"
STUBS = {
    # srun runs a command once: its options go, up to the command.
    "srun": '#!/bin/sh\nwhile case $1 in --jobid) shift ;; -*) : ;; *) false ;; esac; do shift; done\nexec "$@"\n',
    "scontrol": "#!/bin/sh\necho 127.0.0.1\n",
    "hostname": "#!/bin/sh\necho gpu-node-3\n",
    "fairseq-train": "#!/usr/bin/env python3\n",
    "python": '#!/bin/sh\nif [ "$1" = -u ] && [ "$2" = -m ]; then module=$3 skip=3; else module=$2 skip=2; fi\n'
              'case "$*" in *"-m torch.distributed.run "* | *"-m torch.distributed.launch "*)\n'
              '  if [ "$LINES_PYTHON" ]; then exec "$LINES_PYTHON" "$@"; fi\n  shift $skip\n  exec torchrun "$@" ;;\n'
              'esac\nexec "$PYTHON_EXEC" "$@"\n',
}


def read_entries():
    """[(source, {property: value}, line)]"""
    with open(os.path.join(HERE, "lines.txt")) as file:
        texts = [line.rstrip("\n") for line in file if line.strip() and not line.startswith("#")]
    entries = []
    for head, line in zip(texts[::2], texts[1::2]):
        words = head.split()
        properties = dict(word.partition("=")[::2] for word in words[2:])
        entries.append((words[0] + " " + words[1], properties, line))
    return entries


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, mode)


class Workspace:
    """A folder with stand-ins for everything that a line names."""

    def __init__(self, launcher):
        self.root = tempfile.mkdtemp(prefix="lines.")
        self.cwd = os.path.join(self.root, "work", "a", "b")
        os.makedirs(self.cwd)
        os.makedirs(os.path.join(self.root, "out"))
        for name, text in STUBS.items():
            write(os.path.join(self.root, "bin", name), text, 0o755)
        shutil.copy(os.path.join(self.root, "bin", "python"), os.path.join(self.root, "bin", "python3"))
        write(os.path.join(self.root, "bin", "torchrun"), launcher, 0o755)
        write(os.path.join(self.root, "lib", "sitecustomize.py"), RECORDER)

    def close(self):
        shutil.rmtree(self.root, ignore_errors=True)

    def adapt(self, line, port):
        """The line for this machine: its addresses, ports and paths."""
        line = re.sub(r"\b\d+\.\d+\.\d+\.\d+\b", "127.0.0.1", line)
        line = line.replace("$RANDOM", str(port))  # sbatch expands it once for all nodes
        line = re.sub(r":\d{4,5}\b", f":{port}", line)
        line = re.sub(r"(--master[-_]port[= ])\d+", rf"\g<1>{port}", line)
        return re.sub(r"(?<= )/(shared|your|opt)/", rf"{self.root}/\1/", line)

    def stand_in(self, line):
        for word in re.findall(r"[^\s;'\"(){}]+", line):
            word = word.split(":-")[-1]
            path = os.path.normpath(os.path.join(self.cwd, word.replace("$PWD/", "")))
            if word.endswith(".py") and not word.startswith("-"):
                write(path, SCRIPT)
            if word.endswith((".sh", "/coverage")):
                write(path, '#!/bin/sh\nexec python3 -c pass "$@"\n', 0o755)
        for module in re.findall(r"(?:-m|--module) ([\w.]+)", line) + ["scripts.train"]:
            if not module.startswith("torch.distributed"):
                write(os.path.join(self.root, "lib", *module.split(".")) + ".py", "")

    def environment(self, nodes, node, port, more):
        kept = {key: os.environ[key] for key in ("PATH", "LANG", "LD_LIBRARY_PATH", "TMPDIR") if key in os.environ}
        values = {key: value.format(nodes=nodes, node=node, port=port) for key, value in VALUES.items()}
        kept["PATH"] = os.path.join(self.root, "bin") + ":" + kept.get("PATH", "/usr/bin:/bin")
        return {**kept, **values, "HOME": os.path.join(self.root, "home"), "LINES_OUT": os.path.join(self.root, "out"), "LINES_NODE": str(node),
                "PYTHONPATH": os.path.join(self.root, "lib"), "PYTHON_EXEC": sys.executable,
                "FLEET_RUNTIME_DIR": os.path.join(self.root, "run"), "FLEET_JOB_SECRET": "0" * 64, **more}

    def run(self, line, nodes, more):
        """(exit codes, what they wrote, {rank: what it saw}, the environment of node 0)"""
        port = free_port()
        line = self.adapt(line, port)
        self.stand_in(line)
        processes = []
        for node in range(nodes):
            environment = self.environment(nodes, node, port, more)
            output = open(os.path.join(self.root, f"node{node}.out"), "w+")
            processes.append((subprocess.Popen(["bash", "-c", line], cwd=self.cwd, env=environment, stdin=subprocess.DEVNULL,
                                               stdout=output, stderr=subprocess.STDOUT, start_new_session=True), output))
        codes, texts = [], []
        for process, output in processes:
            try:
                codes.append(process.wait(TIMEOUT))
            except subprocess.TimeoutExpired:
                codes.append("does not end")
            try:
                os.killpg(process.pid, signal.SIGTERM if codes[-1] == "does not end" else 0)
            except OSError:
                pass
            output.seek(0)
            texts.append(output.read())
        return codes, "\n".join(texts), self.seen(), self.environment(nodes, 0, port, more)

    def seen(self):
        ranks = {}
        folder = os.path.join(self.root, "out")
        for name in sorted(os.listdir(folder)):
            if not name.endswith(".json"):
                continue
            with open(os.path.join(folder, name)) as file:
                text = file.read().replace(self.root, "ROOT")
            ranks.setdefault(name.split(".")[0], []).append(json.loads(text))
        return ranks


def without_local_rank(argv):
    return [word for word in argv if not word.startswith("--local-rank=")]


# --- golden ---

def variables_set(seen, outside):
    return {key: "*" if key in PLACES else value for key, value in sorted(seen["env"].items())
            if key not in OWN and (key in ALWAYS or outside.get(key) != value)}


def make_entry(number, entry, python):
    source, properties, line = entry
    nodes = int(properties.get("nodes", 1))
    workspace = Workspace(f'#!/bin/sh\nexec "{python}" -m torch.distributed.run "$@"\n')
    try:
        codes, text, ranks, outside = workspace.run(line, nodes, {"LINES_PYTHON": python})
        outside = json.loads(json.dumps(outside).replace(workspace.root, "ROOT"))
    finally:
        workspace.close()
    refused = "refused" in properties
    if refused == (codes == [0] * nodes) or (not refused and not ranks):
        print(f"{number} {source}: {codes}\n{text[-3000:]}", file=sys.stderr)
        return None
    if refused:
        return {"line": line}
    all_seen = [variables_set(each[0], outside) for each in ranks.values()]
    common = {key: value for key, value in all_seen[0].items() if all(seen.get(key) == value for seen in all_seen)}
    made = {"line": line, "common": common, "ranks": {}, "argv": without_local_rank(next(iter(ranks.values()))[0]["argv"])}
    for rank in sorted(ranks, key=int):
        seen = ranks[rank][0]
        made["ranks"][rank] = {key: value for key, value in variables_set(seen, outside).items() if key not in common}
        if without_local_rank(seen["argv"]) != made["argv"]:
            made["ranks"][rank]["argv"] = without_local_rank(seen["argv"])
    return made


def make_golden(python, numbers):
    path = os.path.join(HERE, "golden.json")
    entries = read_entries()
    golden = {}
    if os.path.exists(path):
        with open(path) as file:
            golden = {each["line"]: each for each in json.load(file)}
    wanted = [i for i, entry in enumerate(entries) if (i in numbers if numbers else entry[2] not in golden)]
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for i, made in zip(wanted, pool.map(lambda i: make_entry(i, entries[i], python), wanted)):
            if made:
                golden[entries[i][2]] = made
    kept = [golden[line] for _, _, line in entries if line in golden]
    with open(path, "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(each, sort_keys=True) for each in kept) + "\n]\n")
    return 0 if len(kept) == len(entries) else 1


# --- test ---

def complaints(golden, ranks, name):
    """What of the ranks differs from golden."""
    bad = []
    if sorted(ranks, key=int) != sorted(golden["ranks"], key=int):
        return [f"ranks {sorted(ranks, key=int)} instead of {sorted(golden['ranks'], key=int)}"]
    for rank, own in golden["ranks"].items():
        if len(ranks[rank]) != 1 and name == "torchrun" and "--no-python" not in golden["line"]:
            bad.append(f"rank {rank} ran {len(ranks[rank])} times")
        seen = ranks[rank][0]
        for key, value in {**golden["common"], **own}.items():
            if key in PLACES:
                bad += [] if seen["env"].get(key) else [f"rank {rank} has no {key}"]
            elif key == "argv" or (key in VALUES and key != "RANK"):
                continue
            elif key == "OMP_NUM_THREADS" and name == "fleetrun":
                continue
            elif seen["env"].get(key) != value:
                bad.append(f"rank {rank}: {key} is {seen['env'].get(key)!r}, not {value!r}")
        if seen["env"].get("TORCHELASTIC_USE_AGENT_STORE") != "False":
            bad.append(f"rank {rank}: there is no agent's store")
        wanted = own.get("argv", golden["argv"])
        if name == "torchrun" and "--run-path" not in golden["line"] and seen["argv"] != wanted:
            bad.append(f"rank {rank} is {shlex.join(seen['argv'])}, not {shlex.join(wanted)}")
    run_id = re.search(r"--rdzv[-_]id[= ]([\w-]+)(?=\s)", golden["line"])
    if run_id:
        bad += [f"rank {rank}: id" for rank, seen in ranks.items() if seen[0]["env"]["TORCHELASTIC_RUN_ID"] != run_id[1]]
    return bad


def check(entry, golden, fleetrun, name):
    source, properties, line = entry
    nodes = int(properties.get("nodes", 1))
    workspace = Workspace(f'#!/bin/sh\nexec "{os.path.join(HERE, "x")}" "$@"\n')
    try:
        link = os.path.join(workspace.root, "bin", "torchrun")
        os.unlink(link)
        if name == "torchrun":
            os.symlink(fleetrun, link)
        else:
            write(link, f'#!/bin/sh\nexec "{fleetrun}" "$@"\n', 0o755)
        # By its own name fleetrun has fixed ports for several nodes, which runs at the same time would share.
        codes, text, ranks, _ = workspace.run(line, nodes, {"PADDLE_START_PORT": "0"})
    finally:
        workspace.close()
    if "refused" in properties:
        good = codes == [2] * nodes and text.count("\n") <= 3
        return [] if good else [f"ended with {codes}:\n{text}"]
    bad = complaints(golden, ranks, name) if codes == [0] * nodes else [f"ended with {codes}:\n{text[-3000:]}"]
    return bad


def test(fleetrun, numbers):
    if sys.version_info < (3, 10):
        print("SKIP: the stand-ins need Python 3.10")
        return 77
    entries = read_entries()
    with open(os.path.join(HERE, "golden.json")) as file:
        golden = {each["line"]: each for each in json.load(file)}
    jobs = [(i, name) for i in range(len(entries)) if not numbers or i in numbers for name in ("torchrun", "fleetrun")]
    failed = 0

    def one(job):
        i, name = job
        if entries[i][2] not in golden:
            return [f"golden.json does not have it: lines.py golden PYTHON {i}"]
        return check(entries[i], golden[entries[i][2]], os.path.abspath(fleetrun), name)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for (i, name), bad in zip(jobs, pool.map(one, jobs)):
            if bad:
                failed += 1
                print(f"FAILED: {i} as {name}: {entries[i][2]}\n  " + "\n  ".join(bad[:12]))
    print(f"{len(jobs) - failed} of {len(jobs)} runs of {len(jobs) // 2} lines are as under torchrun")
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in ("test", "golden"):
        sys.exit(__doc__)
    numbers = {int(number) for number in sys.argv[3:]}
    sys.exit(test(sys.argv[2], numbers) if sys.argv[1] == "test" else make_golden(sys.argv[2], numbers))

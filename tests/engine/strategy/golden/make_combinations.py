#!/usr/bin/env python3
"""Writes which meta-optimizers act of each subset of them, as Paddle decides, for tests/engine/strategy/combinations_test.cc.

usage: PYTHON make_combinations.py >paddle_2.6.2_combinations.txt

PYTHON: one with paddlepaddle; 2.6.2 was used (pip install paddlepaddle==2.6.2 protobuf==3.20.2). For each subset a
small net is handed to fleet's own minimize() in static mode, which asks every meta-optimizer of its registry whether it
can apply, and its StrategyCompiler which of those go together. It is stopped there: nothing is rewritten or connected.

Of a file's columns the first 4 are with without_graph_optimization=False, the default of 2.0 to 2.4 (and ours), the
others with True, that of later ones: RawProgramOptimizer, which sums the gradients there, then competes too. Since it
may wrap neither FP16AllReduceOptimizer nor AdaptiveLocalSGDOptimizer, these two then mostly lose.

2.0 and 2.1 choose by the same rule: the longest path came with Paddle's pull request 27867 of October 2020. The white
lists of a source of early 2021, between the two, are those of 2.6.2 and GraphExecutionOptimizer, which 2.6.2 no longer
has and which does not compete there: it is chosen beside the chain. So 2.1.0 differs from the first 4 columns in
nothing that was found, and has no other columns: without_graph_optimization came with 2.1.1 (pull request 33511), false
by default. Before that pull request of 2020 a meta-optimizer and all those on its white list were taken together.
"""
import contextlib
import io
import itertools
import logging
import os
import subprocess
import sys

LETTERS = {
    "T": ("adaptive_localsgd", "AdaptiveLocalSGDOptimizer"),
    "A": ("amp", "AMPOptimizer"),
    "D": ("dgc", "DGCOptimizer"),
    "F": ("fp16_allreduce", "FP16AllReduceOptimizer"),
    "G": ("gradient_merge", "GradientMergeOptimizer"),
    "B": ("lamb", "LambOptimizer"),
    "S": ("lars", "LarsOptimizer"),
    "L": ("localsgd", "LocalSGDOptimizer"),
    "R": ("recompute", "RecomputeOptimizer"),
    "Z": ("sharding", "ShardingOptimizer"),
    "W": ("without_graph_optimization", "RawProgramOptimizer"),
}
SUBSETS = [
    "".join(letters)
    for count in range(len(LETTERS))
    for letters in itertools.combinations([letter for letter in LETTERS if letter != "W"], count)
]


class Chosen(Exception):
    """What the strategy compiler has chosen, by class."""


def use_paddle(ranks):
    """A function of a subset, a rule's name and without_graph_optimization that gives the letters that act."""
    os.environ["PADDLE_TRAINERS_NUM"] = str(ranks)
    os.environ["PADDLE_TRAINER_ID"] = "0"
    os.environ["PADDLE_TRAINER_ENDPOINTS"] = ",".join(f"127.0.0.1:{36000 + rank}" for rank in range(ranks))
    os.environ["PADDLE_CURRENT_ENDPOINT"] = "127.0.0.1:36000"
    import paddle
    from paddle.distributed import fleet
    from paddle.distributed.fleet.base import role_maker, strategy_compiler

    paddle.enable_static()
    logging.disable(logging.CRITICAL)
    compiler = strategy_compiler.StrategyCompiler
    generate = compiler.generate_optimizer

    def generate_and_stop(self, *arguments):
        generate(self, *arguments)
        raise Chosen(self._get_applied_meta_list())

    compiler.generate_optimizer = generate_and_stop
    job = sys.modules["paddle.distributed.fleet.fleet"].Fleet()
    job._role_maker = role_maker.PaddleCloudRoleMaker(is_collective=True)
    job._is_collective = True
    letter_of = {class_name: letter for letter, (_, class_name) in LETTERS.items()}

    def choose(subset, rule, without_graph):
        strategy = fleet.DistributedStrategy()
        strategy.without_graph_optimization = without_graph
        for letter in subset:
            setattr(strategy, LETTERS[letter][0], True)
        if "G" in subset:
            strategy.gradient_merge_configs = {"k_steps": 2}
        if "R" in subset:
            strategy.recompute_configs = {"checkpoints": ["fc"]}
        job.strategy_compiler = compiler()
        main, startup = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, startup):
            loss = paddle.mean(paddle.static.nn.fc(paddle.static.data("x", [4, 4]), 2))
            optimizer = {"momentum": paddle.optimizer.Momentum, "adam": paddle.optimizer.Adam}[rule](0.1)
            job.distributed_optimizer(optimizer, strategy)
            try:
                job.minimize(loss, startup)
            except Chosen as chosen:
                return "".join(letter_of[name] for name in chosen.args[0]) or "-"
        raise SystemExit(f"{subset}: the strategy compiler was not asked")

    return paddle.__version__, choose


def main():
    if len(sys.argv) > 1:  # one number of ranks, which a process can have only one of
        with contextlib.redirect_stdout(io.StringIO()):
            release, choose = use_paddle(int(sys.argv[1]))
            columns = [
                [choose(subset, rule, without_graph) for rule in ("momentum", "adam") for without_graph in (False, True)]
                for subset in SUBSETS
            ]
        print(release)
        for column in columns:
            print(*column)
        return
    outcomes = []
    for ranks in ("1", "2"):
        done = subprocess.run([sys.executable, __file__, ranks], check=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
        release, *lines = done.stdout.splitlines()
        outcomes.append([line.split() for line in lines])
    print(f"# Which meta-optimizers act, by Paddle {release}'s strategy compiler; from make_combinations.py.")
    for letter, (name, class_name) in LETTERS.items():
        print(f"# {letter}={name} {class_name}")
    print("# asked for; then with momentum on 1 rank, on 2, with adam on 1, on 2; the same with W asked for too;")
    print("# the outermost first, - for none")
    for subset, one, two in zip(SUBSETS, *outcomes):
        (m1, wm1, a1, wa1), (m2, wm2, a2, wa2) = one, two
        print(subset or "-", m1, m2, a1, a2, wm1, wm2, wa1, wa2)


if __name__ == "__main__":
    main()

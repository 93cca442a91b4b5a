#!/usr/bin/env python3
"""Writes strategies as releases of Paddle save them, for tests/engine/strategy/golden_test.cc.

usage: PYTHON make_golden.py FOLDER

With a PYTHON that has paddlepaddle the files are its own save_to_prototxt's, paddle_RELEASE_*.prototxt:
    2.6.2 (pip install paddlepaddle==2.6.2 protobuf==3.20.2) and 3.3.1 were used. paddle_RELEASE_fields.txt
    has every field, but those of parameter servers and of NCCL's groups; of these two with type and default.
With one that has protobuf only (3.20) those of 2.0 and 2.1: printed by protobuf's text format from the
fields' names, numbers and types of these releases, set as their setters do (all fields of what is set).
"""
import os
import sys


def saved(strategy, folder, release, name):
    strategy.save_to_prototxt(os.path.join(folder, f"paddle_{release}_{name}.prototxt"))


def write_fields(message, prefix, out):
    types = {2: "float", 5: "int32", 8: "bool", 9: "string", 14: "enum"}
    for field in message.fields:
        path = prefix + field.name
        repeated = field.is_repeated if hasattr(field, "is_repeated") else field.label == 3
        if field.type == 11:
            if not repeated and "nccl" not in path and field.name != "fs_client_param":
                write_fields(field.message_type, path + ".", out)
            continue
        default = field.default_value
        if repeated:
            text = "list"
        elif field.type == 14:
            text = field.enum_type.values_by_number[default].name
        elif field.type == 9:
            text = f'"{default}"'
        else:
            text = str(default).lower() if field.type == 8 else f"{default:.7g}"
        out.write(f"{path} {types[field.type]} {text}\n")


def of_paddle(folder):
    import paddle
    from paddle.distributed.fleet.proto import distributed_strategy_pb2
    from paddle.distributed import fleet

    release = paddle.__version__
    with open(os.path.join(folder, f"paddle_{release}_fields.txt"), "w") as out:
        write_fields(distributed_strategy_pb2.DistributedStrategy.DESCRIPTOR, "", out)
    saved(fleet.DistributedStrategy(), folder, release, "default")

    # collective_training_practice: the ResNet50 example
    example = fleet.DistributedStrategy()
    example.sync_nccl_allreduce = True
    example.nccl_comm_num = 2
    example.fuse_all_reduce_ops = True
    build = paddle.static.BuildStrategy()
    if hasattr(build, "enable_sequential_execution"):  # gone in 3
        build.enable_sequential_execution = True
    build.fuse_elewise_add_act_ops = True
    build.fuse_bn_act_ops = True
    build.enable_auto_fusion = True
    build.fuse_all_optimizer_ops = True
    example.build_strategy = build
    if hasattr(paddle.static, "ExecutionStrategy"):
        execution = paddle.static.ExecutionStrategy()
        execution.num_threads = 3
        execution.num_iteration_per_drop_scope = 100
        execution.num_iteration_per_run = 1
        example.execution_strategy = execution
    example.amp = True
    example.amp_configs = {
        "init_loss_scaling": 128,
        "decr_every_n_nan_or_inf": 2,
        "incr_every_n_steps": 1000,
        "incr_ratio": 2.0,
        "use_dynamic_loss_scaling": True,
        "decr_ratio": 0.5,
        "custom_white_list": ["conv2d", "matmul_v2"],
        "custom_black_list": [],
    }
    saved(example, folder, release, "example")

    asynchronous = fleet.DistributedStrategy()
    asynchronous.a_sync = False
    saved(asynchronous, folder, release, "a_sync")

    copied = fleet.DistributedStrategy()  # every setter, with what the getter gives
    for name, member in sorted(vars(fleet.DistributedStrategy).items()):
        if not isinstance(member, property) or not member.fset:
            continue
        try:
            setattr(copied, name, getattr(copied, name))
        except Exception as error:  # noqa: BLE001: messages within messages
            print(f"{release}: {name} is left out: {type(error).__name__} {error}")
    copied.hybrid_configs = {"dp_degree": -1, "mp_degree": 1, "pp_degree": 1, "sharding_degree": 1, "sep_degree": 1,
                             "mp_configs": {"sync_param": True, "sync_mode": "broadcast"},
                             "pp_configs": {"dp_comm_overlap": False, "profiling": False}}
    saved(copied, folder, release, "copied")

    on = fleet.DistributedStrategy()  # every feature
    for name in ("recompute", "localsgd", "adaptive_localsgd", "dgc", "gradient_merge", "lars", "lamb", "pipeline",
                 "sharding", "tensor_parallel", "sync_batch_norm", "fp16_allreduce", "asp", "qat",
                 "use_hierarchical_allreduce", "fuse_grad_merge", "adam_d2sum", "find_unused_parameters"):
        setattr(on, name, True)
    on.hierarchical_allreduce_inter_nranks = 8
    on.recompute_configs = {"checkpoints": ["x", "y"], "enable_offload": True, "checkpoint_shape": [100, 512, 1024]}
    on.gradient_merge_configs = {"k_steps": 4, "avg": False}
    on.lars_configs = {"lars_coeff": 0.002, "epsilon": 1e-9, "exclude_from_weight_decay": ["batch_norm", ".b"]}
    on.dgc_configs = {"rampup_begin_step": 1252, "sparsity": [0.9, 0.999]}
    on.pipeline_configs = {"micro_batch_size": 12}
    on.sharding_configs = {"sharding_degree": 4, "segment_broadcast_MB": 16}
    saved(on, folder, release, "on")


# The fields of 2.0 and 2.1: NAME=NUMBER and b(ool), i(nt32), f(loat), s(tring), *: a list, or :MESSAGE.
COMMON = {
    "Recompute": "checkpoints=1s* enable_offload=2b checkpoint_shape=3i*",
    "LocalSGD": "k_steps=1i begin_step=2i",
    "AdaptiveLocalSGD": "init_k_steps=1i begin_step=2i",
    "GradientMerge": "k_steps=1i avg=2b",
    "DGC": "rampup_begin_step=1i rampup_step=2i sparsity=3f*",
    "Lars": "lars_coeff=1f lars_weight_decay=2f epsilon=3f exclude_from_weight_decay=4s*",
    "Lamb": "lamb_weight_decay=1f exclude_from_weight_decay=2s*",
    "Build": """enable_sequential_execution=1b fuse_elewise_add_act_ops=2b fuse_bn_act_ops=3b
        fuse_relu_depthwise_conv=4b fuse_broadcast_ops=5b fuse_all_optimizer_ops=6b enable_inplace=7b
        enable_backward_optimizer_op_deps=8b cache_runtime_context=9b fuse_bn_add_act_ops=10b enable_auto_fusion=11b
        enable_addto=12b""",
    "Execution": "num_threads=1i num_iteration_per_drop_scope=2i num_iteration_per_run=3i use_thread_barrier=4b",
}
AMP = """init_loss_scaling=1f incr_every_n_steps=2i decr_every_n_nan_or_inf=3i incr_ratio=4f decr_ratio=5f
    use_dynamic_loss_scaling=6b custom_white_list=7s* custom_black_list=8s* custom_black_varnames=9s*"""
ASYNC = """k_steps=1i max_merge_var_num=2i send_queue_size=3i independent_recv_thread=4b
    min_send_grad_num_before_recv=5i thread_pool_size=6i send_wait_times=7i runtime_split_send_recv=8b
    launch_barrier=9b heter_worker_device_guard=10s"""
STRATEGY = """mode=1i amp=2b recompute=3b localsgd=4b dgc=5b gradient_merge=6b lars=7b lamb=8b pipeline=9b elastic=10b
    auto=11b a_sync=12b sync_nccl_allreduce=13b nccl_comm_num=14i use_hierarchical_allreduce=15b
    hierarchical_allreduce_inter_nranks=16i sync_batch_norm=17b fuse_all_reduce_ops=18b fuse_grad_size_in_MB=19i
    fuse_grad_size_in_TFLOPS=20f cudnn_exhaustive_search=21b conv_workspace_size_limit=22i
    cudnn_batchnorm_spatial_persistent=23b adaptive_localsgd=24b fp16_allreduce=25b sharding=26b
    last_comm_group_size_MB=27f recompute_configs=101:Recompute amp_configs=102:AMP localsgd_configs=103:LocalSGD
    gradient_merge_configs=104:GradientMerge dgc_configs=105:DGC pipeline_configs=106:Pipeline
    a_sync_configs=107:Async lars_configs=108:Lars lamb_configs=109:Lamb
    adaptive_localsgd_configs=110:AdaptiveLocalSGD sharding_configs=111:Sharding build_strategy=201:Build
    execution_strategy=202:Execution"""
TABLES = {
    "2.0": COMMON | {
        "AMP": AMP,
        "Async": ASYNC,
        "Pipeline": "micro_batch=1i",
        "Sharding": "fuse_broadcast_MB=1f hybrid_dp=2b sharding_group_size=3i",
        "Strategy": STRATEGY,
    },
    "2.1": COMMON | {
        "AMP": AMP + " use_pure_fp16=10b use_fp16_guard=11b",
        "Async": ASYNC + " lr_decay_steps=11i use_ps_gpu=12i",
        "Pipeline": "micro_batch_size=1i accumulate_steps=2i schedule_mode=3s",
        "Sharding": """sharding_segment_strategy=1s segment_broadcast_MB=2f segment_anchors=3s* sharding_degree=4i
            mp_degree=5i dp_degree=6i hybrid_dp=7b gradient_merge_acc_step=8i optimize_offload=9b
            pp_allreduce_in_optimize=10b pp_degree=11i""",
        "Hybrid": "dp_degree=1i mp_degree=2i pp_degree=3i",
        "TensorParallel": "tensor_parallel_degree=1i tensor_init_seed=2i",
        "Strategy": STRATEGY + """ find_unused_parameters=28b tensor_parallel=29b without_graph_optimization=30b
            hybrid_configs=112:Hybrid tensor_parallel_configs=113:TensorParallel""",
    },
}


def write_names(tables, message, prefix, out):
    for entry in tables[message].split():
        name, rest = entry.split("=")
        if ":" in rest:
            write_names(tables, rest.split(":")[1], prefix + name + ".", out)
        else:
            out.write(f"{prefix}{name}\n")


def message_of(release):
    """The message class of a release, from the tables above."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name=f"strategy{release}.proto", package="p" + release.replace(".", "_"))
    types = {"b": 8, "i": 5, "f": 2, "s": 9}
    for name, table in TABLES[release].items():
        message = file.message_type.add(name=name)
        for entry in table.split():
            field_name, rest = entry.split("=")
            field = message.field.add(name=field_name, label=1)
            if ":" in rest:
                number, type_name = rest.split(":")
                field.type, field.type_name = 11, f".{file.package}.{type_name}"
            else:
                number = rest.rstrip("bifs*")
                field.type = types[rest[len(number)]]
                field.label = 3 if rest.endswith("*") else 1
            field.number = int(number)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName(file.package + ".Strategy"))


def of_tables(folder):
    for release in ("2.0", "2.1"):
        def write(strategy, name):
            with open(os.path.join(folder, f"paddle_{release}_{name}.prototxt"), "w") as out:
                out.write(str(strategy))

        with open(os.path.join(folder, f"paddle_{release}_fields.txt"), "w") as out:
            write_names(TABLES[release], "Strategy", "", out)

        # On a GPU the constructor copies these four from the process's flags.
        default = message_of(release)(sync_nccl_allreduce=True, cudnn_exhaustive_search=False,
                                      conv_workspace_size_limit=512, cudnn_batchnorm_spatial_persistent=False)
        write(default, "default")

        example = type(default)()
        example.CopyFrom(default)
        example.nccl_comm_num = 2
        example.fuse_all_reduce_ops = True
        on = {"enable_sequential_execution", "fuse_elewise_add_act_ops", "fuse_bn_act_ops", "enable_auto_fusion",
              "fuse_all_optimizer_ops", "enable_inplace", "enable_backward_optimizer_op_deps", "fuse_bn_add_act_ops"}
        for field in example.build_strategy.DESCRIPTOR.fields:
            setattr(example.build_strategy, field.name, field.name in on)
        execution = {"num_threads": 3, "num_iteration_per_drop_scope": 100, "num_iteration_per_run": 1,
                     "use_thread_barrier": False}
        for name, value in execution.items():
            setattr(example.execution_strategy, name, value)
        example.amp = True
        amp = {"init_loss_scaling": 128, "decr_every_n_nan_or_inf": 2, "incr_every_n_steps": 1000, "incr_ratio": 2.0,
               "use_dynamic_loss_scaling": True, "decr_ratio": 0.5}
        for name, value in amp.items():
            setattr(example.amp_configs, name, value)
        example.amp_configs.custom_white_list.extend(["conv2d", "matmul_v2"])
        write(example, "example")

        # Untouched execution and build strategies, and a_sync, copy every field.
        copied = type(default)()
        copied.CopyFrom(default)
        copied.a_sync = False
        copied.a_sync_configs.k_steps = 0
        for name, value in {**execution, "num_threads": 0}.items():
            setattr(copied.execution_strategy, name, value)
        for field in copied.build_strategy.DESCRIPTOR.fields:
            on_unset = field.name in ("enable_backward_optimizer_op_deps", "fuse_bn_add_act_ops")
            setattr(copied.build_strategy, field.name, on_unset)
        write(copied, "copied")

        features = type(default)(sharding=True, pipeline=True)
        if release == "2.0":
            features.sharding_configs.fuse_broadcast_MB = 16
            features.sharding_configs.sharding_group_size = 4
            features.pipeline_configs.micro_batch = 12
        else:
            features.sharding_configs.segment_broadcast_MB = 16
            features.sharding_configs.sharding_degree = 4
            features.pipeline_configs.micro_batch_size = 12
        write(features, "on")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        import paddle  # noqa: F401
    except ImportError:
        of_tables(sys.argv[1])
    else:
        of_paddle(sys.argv[1])


if __name__ == "__main__":
    main()

"""The settings that the checks and benchmarks change, in one place."""

AMP = {"strategy.amp": True}  # the device's own low type: float16 on a GPU, bfloat16 on a CPU
FLOAT16 = {"strategy.amp": True, "strategy.amp_configs.dtype": "float16"}
BFLOAT16 = {"strategy.amp": True, "strategy.amp_configs.dtype": "bfloat16"}
TF32_ON = {"train.enable_cublas_tensor_op_math": True}
TF32_OFF = {"train.enable_cublas_tensor_op_math": False}
DETERMINISTIC = {"train.deterministic": True}
LITTLE_MEMORY = {"train.fraction_of_gpu_memory_to_use": 0.1}
EXHAUSTIVE = {"strategy.cudnn_exhaustive_search": True}
NO_GRAPH = {"train.cuda_graph": False}
NO_FUSED_BN = {
    "strategy.build_strategy.fuse_bn_act_ops": False,
    "strategy.build_strategy.fuse_bn_add_act_ops": False,
    "strategy.build_strategy.fuse_elewise_add_act_ops": False,
}
FUSED_BN = {"strategy.build_strategy.fuse_bn_act_ops": True, "strategy.build_strategy.fuse_bn_add_act_ops": True}

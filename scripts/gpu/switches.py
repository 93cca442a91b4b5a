"""The settings that the checks and benchmarks turn: one place, so that a renamed key is one edit."""

AMP = {"strategy.amp": True}  # float16 on a GPU, bfloat16 on a CPU
FLOAT16 = AMP
BFLOAT16 = {"strategy.amp": True, "strategy.amp_configs.use_bf16": True}
TF32_ON = {"FLAGS_enable_cublas_tensor_op_math": "1"}
TF32_OFF = {"FLAGS_enable_cublas_tensor_op_math": "0"}
DETERMINISTIC = {"FLAGS_cudnn_deterministic": "1"}
EXHAUSTIVE = {"strategy.cudnn_exhaustive_search": True}
NO_GRAPH = {"train.cuda_graph": False}
NO_FUSED_BN = {
    "strategy.build_strategy.fuse_bn_act_ops": False,
    "strategy.build_strategy.fuse_bn_add_act_ops": False,
    "strategy.build_strategy.fuse_elewise_add_act_ops": False,
}
FUSED_BN = {"strategy.build_strategy.fuse_bn_act_ops": True, "strategy.build_strategy.fuse_bn_add_act_ops": True}
NO_PATTERNS = {"strategy.build_strategy.fuse_conv_bn_patterns": False}

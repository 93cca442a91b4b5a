#define FLEET_TARGET
#define FLEET_ISA baseline
#include "comm/reduce_kernels.inc"

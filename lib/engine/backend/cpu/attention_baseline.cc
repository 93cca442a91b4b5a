#define FLEET_TARGET
#define FLEET_ISA baseline
#define FLEET_LANES 4
#define FLEET_PANEL 2
#define FLEET_HAS_PAIRS 0
#include "backend/cpu/attention_loops.inc"

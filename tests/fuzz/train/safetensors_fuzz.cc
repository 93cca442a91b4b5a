#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/weights.h"
#include "train/safetensors.h"

FLEET_FUZZ(safetensors) {
  const fleet::fuzz::MemoryFile file(bytes);
  fleet::fuzz::check_tensors(fleet::read_safetensors(file.path()));
}

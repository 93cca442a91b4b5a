// Files of torch.save(): a zip with a pickle, or pickles.
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/weights.h"
#include "train/torch_file.h"

FLEET_FUZZ(torch_file) {
  const fleet::fuzz::MemoryFile file(bytes);
  fleet::fuzz::check_tensors(fleet::read_torch_file(file.path()));
}

// The memory of a server's blocks.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "exec/executor.h"
#include "ps/dense_payload.h"
#include "ps/update_program.h"

namespace fleet::ps {

// For use by one thread. Sections have the padding that dense_payload.h describes.
class BlockStore {
 public:
  virtual ~BlockStore() = default;
  // kInternal if the size is not that of the sections.
  virtual void load(uint32_t sections, std::span<const std::byte> data) = 0;
  // The memory stays unchanged until load(), add_to_values() or update(), and as long as an owner
  // lives.
  virtual std::vector<Bytes> read(uint32_t sections) const = 0;
  // Adds a trainer's gradients to the sums; `first` starts new ones. Call it in the order of the
  // trainers' ranks. Passes over gradients in 16-bit types. kInternal if the size is not theirs.
  virtual void add(std::span<const std::byte> gradients, bool first) = 0;
  // Sums of 16-bit types are rounded once, so they need all trainers' gradients together.
  virtual bool has_low_types() const = 0;
  virtual void add_low_types(const std::vector<std::span<const std::byte>>& gradients) = 0;
  // Whether the update needs sums of squares of all servers' gradients.
  virtual bool shares_norms() const = 0;
  // This server's, float64, once the gradients of all trainers are in the sums.
  virtual Bytes norms() = 0;
  // Those of all servers, in the order of norm_parts(), for the next update. kInternal if the size
  // is not theirs.
  virtual void set_norms(std::span<const std::byte> parts) = 0;
  // Adds a trainer's differences to the values (geo). kInternal if the size is not theirs.
  virtual void add_to_values(std::span<const std::byte> differences) = 0;
  // Updates the values and states from the sums.
  virtual void update(float learning_rate, bool left_out) = 0;
};

// In the memory of an executor that runs the server's Program. device: the backend "cpu" made it.
std::unique_ptr<BlockStore> make_block_store(ServerProgram program, const ServedModel& model,
                                             const Placement& placement, int server,
                                             Device& device);

}  // namespace fleet::ps

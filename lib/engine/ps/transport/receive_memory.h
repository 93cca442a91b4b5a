// Memory for the payloads of received messages, used again: fresh memory costs as much time as
// copying into it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "ps/message.h"

namespace fleet::ps {

// Thread-safe. Blocks may outlive it.
class ReceiveMemory {
 public:
  static constexpr size_t kAlignment = 64;

  // unused_bytes: how much it keeps for later messages.
  explicit ReceiveMemory(size_t unused_bytes = size_t{64} << 20);

  // Not initialized.
  class Block {
   public:
    Block() = default;
    std::byte* data() const { return data_.get(); }
    size_t size() const { return size_; }
    Bytes bytes() && { return {{data_.get(), size_}, std::move(data_)}; }

   private:
    friend class ReceiveMemory;
    std::shared_ptr<std::byte> data_;
    size_t size_ = 0;
  };
  // Throws std::bad_alloc.
  Block take(size_t bytes);

  // That of all connections of the process.
  static ReceiveMemory& shared();

 private:
  struct Unused;
  std::shared_ptr<Unused> unused_;
};

}  // namespace fleet::ps

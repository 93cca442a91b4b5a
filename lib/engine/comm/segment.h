// Memory that processes of one host share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/file.h"

namespace fleet {

// An anonymous shared file (memfd) mapped into this process. It has no name in any file system and
// disappears with its last process, however that ends. For ranks that are threads of one process,
// it is plain memory that they share. Not thread-safe.
class Segment : public std::enable_shared_from_this<Segment> {
 public:
  // Zeroed and page-aligned. Pages are allocated on first touch. kUnsupported if the system cannot
  // provide it.
  static std::shared_ptr<Segment> create_shared(size_t bytes);
  static std::shared_ptr<Segment> create_in_process(size_t bytes);
  // Attaches to the segment of the creator's handle(). kPeerLost if the creator is gone, kUsage if
  // it is in-process memory of another process.
  static std::shared_ptr<Segment> attach(const std::string& handle);
  ~Segment();
  Segment(const Segment&) = delete;

  char* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  uint64_t id() const { return id_; }  // random; the same in every attached process
  bool in_process() const { return in_process_; }

  // The text that other processes of this host need to attach; valid until close_handle(). Creator
  // only.
  std::string handle();
  void close_handle();  // attached processes may call it too, once they no longer need reserve()
  // Allocates the memory of [offset, offset + bytes) now, near the calling thread, so that a later
  // touch cannot fail. kUnsupported if the machine has too little memory.
  void reserve(size_t offset, size_t bytes);
  // Maps the pages into this process ahead of use.
  void populate();

 private:
  Segment() = default;
  char* data_ = nullptr;
  size_t bytes_ = 0;
  uint64_t id_ = 0;
  bool in_process_ = false;
  UniqueFd fd_;
  std::shared_ptr<Segment>* self_ = nullptr;  // target of an in-process handle
};

}  // namespace fleet

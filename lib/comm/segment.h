// Memory that several ranks of one host see.
#pragma once

#include <memory>
#include <string>

#include "base/file.h"

namespace fleet {

// An anonymous shared file (memfd) mapped into this process: it has no name in any file system and
// is gone with its last process, however that ends. Or, for ranks that are threads of one process,
// plain memory that they share.
class Segment : public std::enable_shared_from_this<Segment> {
 public:
  // Zeroed, page-aligned. Pages are made when they are first touched. kUnsupported where it cannot.
  static std::shared_ptr<Segment> create_shared(size_t bytes);
  static std::shared_ptr<Segment> create_in_process(size_t bytes);
  // From the creator's door(). kPeerLost where the creator is gone, kUsage where it is in-process
  // memory of another process.
  static std::shared_ptr<Segment> attach(const std::string& door);
  ~Segment();
  Segment(const Segment&) = delete;

  char* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  uint64_t id() const { return id_; }  // random; the same for everyone attached
  bool in_process() const { return in_process_; }

  // What others of this host need to attach; valid until close_door(). The creator's only.
  std::string door();
  void close_door();  // also by those attached, once they need reserve() no more
  // Takes the memory of [offset, offset + bytes) now, near the calling thread, so that a later
  // touch cannot fail. kUnsupported where the machine has not got it.
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
  std::shared_ptr<Segment>* self_ = nullptr;  // what an in-process door points to
};

}  // namespace fleet

#include "comm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <random>

#include "base/error.h"
#include "base/proc_number.h"

namespace fleet {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;

std::string megabytes(size_t bytes) { return std::to_string((bytes + (1 << 20) - 1) >> 20); }

[[noreturn]] void no_memory(size_t bytes, int error) {
  throw Error(ErrorCode::kUnsupported,
              "cannot get " + megabytes(bytes) + " MiB of shared memory: " + std::strerror(error),
              {}, "use fewer ranks on this host or a smaller model, or raise its memory limit");
}

char* map(int fd, size_t bytes) {
  const int flags = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (memory == MAP_FAILED) no_memory(bytes, errno);
  if (bytes >= kHugePage) ::madvise(memory, bytes, MADV_HUGEPAGE);
  return static_cast<char*>(memory);
}

uint64_t random_id() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32 | device()) | 1;  // never 0
}

}  // namespace

std::shared_ptr<Segment> Segment::create_shared(size_t bytes) {
  std::shared_ptr<Segment> segment(new Segment);
  segment->bytes_ = (bytes + kPage - 1) / kPage * kPage;
  segment->fd_ = UniqueFd(::memfd_create("fleet", MFD_CLOEXEC));
  if (!segment->fd_) throw_errno("cannot create shared memory (memfd)");
  if (::ftruncate(segment->fd_.get(), static_cast<off_t>(segment->bytes_)) != 0) {
    no_memory(bytes, errno);
  }
  segment->data_ = map(segment->fd_.get(), segment->bytes_);
  segment->id_ = random_id();
  return segment;
}

std::shared_ptr<Segment> Segment::create_in_process(size_t bytes) {
  std::shared_ptr<Segment> segment(new Segment);
  segment->bytes_ = (bytes + kPage - 1) / kPage * kPage;
  segment->data_ = map(-1, segment->bytes_);
  segment->id_ = random_id();
  segment->in_process_ = true;
  return segment;
}

// Either "memfd <number in /proc> <fd> <bytes> <id>" or "memory <pid> <address of a shared_ptr>".
std::string Segment::handle() {
  char text[128];
  if (in_process_) {
    if (!self_) self_ = new std::shared_ptr<Segment>(shared_from_this());
    std::snprintf(text, sizeof text, "memory %d %p", ::getpid(), static_cast<void*>(self_));
  } else {
    std::snprintf(text, sizeof text, "memfd %d %d %zu %" PRIu64, own_proc_number(), fd_.get(),
                  bytes_, id_);
  }
  return text;
}

void Segment::close_handle() {
  fd_.reset();
  // *self_ may be the last reference besides the one that the caller holds.
  delete std::exchange(self_, nullptr);
}

std::shared_ptr<Segment> Segment::attach(const std::string& handle) {
  int pid = 0, fd = 0;
  void* address = nullptr;
  if (std::sscanf(handle.c_str(), "memory %d %p", &pid, &address) == 2) {
    if (pid != ::getpid()) {
      throw Error(ErrorCode::kUsage, "the ranks of an inprocess group run in several processes", {},
                  "use the backend shm");
    }
    return *static_cast<std::shared_ptr<Segment>*>(address);
  }
  std::shared_ptr<Segment> segment(new Segment);
  if (std::sscanf(handle.c_str(), "memfd %d %d %zu %" SCNu64, &pid, &fd, &segment->bytes_,
                  &segment->id_) != 4) {
    throw Error(ErrorCode::kInternal, "invalid shared segment handle: '" + handle + "'");
  }
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
  segment->fd_ = UniqueFd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!segment->fd_) {
    const int error = errno;
    throw Error(error == ENOENT ? ErrorCode::kPeerLost : ErrorCode::kIo,
                "cannot open the shared memory of process " + std::to_string(pid) + ": " +
                    std::strerror(error),
                path,
                error == EACCES ? "ranks of one host must run as one user"
                                : "ranks in different containers need backend gloo, or a node "
                                  "address each");
  }
  segment->data_ = map(segment->fd_.get(), segment->bytes_);
  return segment;
}

void Segment::reserve(size_t offset, size_t bytes) {
  if (in_process_) return;
  int result = 0;
  do {
    result = ::fallocate(fd_.get(), 0, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  if (result != 0) no_memory(bytes, errno);
}

void Segment::populate() {
#ifdef MADV_POPULATE_WRITE
  // Old kernels populate on first touch instead.
  if (!in_process_) ::madvise(data_, bytes_, MADV_POPULATE_WRITE);
#endif
}

Segment::~Segment() {
  if (data_) ::munmap(data_, bytes_);
}

}  // namespace fleet

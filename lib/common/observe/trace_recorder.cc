#include "observe/trace_recorder.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <utility>

namespace fleet {
namespace {

std::atomic<uint64_t> recorders{0};
thread_local uint64_t this_recorder = 0;  // this_track's
thread_local uint32_t this_track = 0;

// A field of a line: without its separators.
std::string field(std::string_view text) {
  std::string clean(text.substr(0, 200));
  for (char& c : clean) {
    if (c == '\t' || c == '\n') c = ' ';
  }
  return clean;
}

std::string thread_name() {
  char name[32] = "";
  ::pthread_getname_np(::pthread_self(), name, sizeof name);
  return std::string(name) + " " + std::to_string(::gettid());
}

}  // namespace

int64_t own_time_namespace() {
  struct stat status;
  return ::stat("/proc/self/ns/time", &status) == 0 ? static_cast<int64_t>(status.st_ino) : 0;
}

std::unique_ptr<TraceRecorder> TraceRecorder::open(const std::string& path) {
  SharedMemory memory = SharedMemory::open(path, TraceMemory::kBytes, TraceMemory::kMagic);
  if (!memory || memory.as<TraceMemory>().state != TraceMemory::kRequested) return nullptr;
  return std::unique_ptr<TraceRecorder>(new TraceRecorder(std::move(memory)));
}

TraceRecorder::TraceRecorder(SharedMemory memory)
    : mapped_(std::move(memory)), memory_(&mapped_.as<TraceMemory>()), id_(++recorders) {
  for (const TraceNameDef& def : kTraceNames) add_name(def.category, def.name);
  memory_->pid = ::getpid();
  memory_->time_namespace = own_time_namespace();
  memory_->state = TraceMemory::kRecording;
}

// A line that does not fit is left out: its number then has no name.
void TraceRecorder::add_line(const std::string& line) {
  const uint64_t at = memory_->text_bytes;
  if (at + line.size() > TraceMemory::kTextBytes) return;
  std::memcpy(memory_->text() + at, line.data(), line.size());
  memory_->text_bytes.store(at + line.size(), std::memory_order_release);
}

uint32_t TraceRecorder::add_name(std::string_view category, std::string_view name,
                                 std::string_view detail, std::string_view key) {
  const MutexLock lock(mutex_);
  add_line("name\t" + std::to_string(names_) + "\t" + field(category) + "\t" + field(name) + "\t" +
           field(detail) + "\t" + field(key) + "\n");
  return names_++;
}

uint32_t TraceRecorder::add_track(std::string_view name) {
  const MutexLock lock(mutex_);
  add_line("track\t" + std::to_string(tracks_) + "\t" + field(name) + "\n");
  return tracks_++;
}

uint32_t TraceRecorder::track_of_this_thread(std::string_view name) {
  if (this_recorder != id_) {
    this_track = add_track(name.empty() ? thread_name() : std::string(name));
    this_recorder = id_;
  }
  return this_track;
}

void TraceRecorder::add(uint32_t track, uint32_t name, int64_t begin_ns, int64_t end_ns,
                        int64_t value) {
  const uint64_t at = memory_->records.fetch_add(1, std::memory_order_relaxed);
  if (at >= TraceMemory::kRecords) return;
  TraceRecord& record = *memory_->record(at);
  record.begin_ns = begin_ns;
  record.end_ns = end_ns;
  record.value = value;
  record.track = track;
  std::atomic_ref(record.name).store(name + 1, std::memory_order_release);
}

}  // namespace fleet

// Events as JSON lines, such as metrics.jsonl. One object per line, with its values in the order of
// the add() calls.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/file.h"
#include "base/mutex.h"

namespace fleet {

//   EventFile file("output/metrics.jsonl");
//   file.write(EventLine("train").add("step", 3).add("loss", 0.25));
//   -> {"event":"train","time":1769000000.123,"step":3,"loss":0.25}
class EventLine {
 public:
  using Value = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>,
                             std::vector<double>, std::vector<std::string>>;

  explicit EventLine(std::string kind) : kind_(std::move(kind)) {}
  EventLine& add(std::string name, bool value) { return put(std::move(name), value); }
  EventLine& add(std::string name, int value) { return put(std::move(name), int64_t{value}); }
  EventLine& add(std::string name, int64_t value) { return put(std::move(name), value); }
  EventLine& add(std::string name, double value) { return put(std::move(name), value); }
  EventLine& add(std::string name, const char* value) {
    return put(std::move(name), std::string(value));
  }
  EventLine& add(std::string name, std::string value) {
    return put(std::move(name), std::move(value));
  }
  EventLine& add(std::string name, std::vector<int64_t> value) {
    return put(std::move(name), std::move(value));
  }
  EventLine& add(std::string name, std::vector<double> value) {
    return put(std::move(name), std::move(value));
  }

  EventLine& add(std::string name, std::vector<std::string> value) {
    return put(std::move(name), std::move(value));
  }

  const std::string& kind() const { return kind_; }
  // By name, in the order of the add() calls.
  const std::vector<std::pair<std::string, Value>>& values() const { return values_; }

  // The line without its newline. A value that is not finite becomes null: JSON has no number for
  // it, and a string would change the type of a column. Bytes that are not UTF-8 become U+FFFD.
  // `time`: seconds since 1970.
  std::string json(double time) const;

 private:
  EventLine& put(std::string name, Value value) {
    values_.emplace_back(std::move(name), std::move(value));
    return *this;
  }
  std::string kind_;
  std::vector<std::pair<std::string, Value>> values_;
};

// Appends to a file. Creates the file and its folder if they are missing, also later. When write()
// returns, the line is in the kernel's hands and survives the death of the process. If a crash cut
// off the last line, the writer ends it instead of continuing it. Thread-safe. kIo: the line is not
// in the file; later lines may be.
class EventFile {
 public:
  explicit EventFile(const std::string& path);
  // time: when the event happened, in seconds since 1970.
  void write(const EventLine& event, double time);
  void write(const EventLine& event);  // that happens now
  const std::string& path() const { return path_; }

 private:
  void open() FLEET_REQUIRES(mutex_);
  const std::string path_;
  Mutex mutex_;
  UniqueFd fd_ FLEET_GUARDED_BY(mutex_);
};

}  // namespace fleet

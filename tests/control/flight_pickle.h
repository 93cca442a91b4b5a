// Dumps of PyTorch's flight recorder for tests, as its pickler writes them (protocol 2).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fleet::pickled {

// A value is its opcodes.
using Fields = std::vector<std::pair<std::string, std::string>>;

inline std::string little(uint64_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i));
  return text;
}
inline std::string none() { return "N"; }
inline std::string boolean(bool value) { return value ? "\x88" : "\x89"; }
inline std::string number(int64_t value) {
  return "\x8a\x08" + little(static_cast<uint64_t>(value), 8);
}
inline std::string text(const std::string& value) { return "X" + little(value.size(), 4) + value; }
inline std::string list(const std::vector<std::string>& values) {
  std::string all = "](";
  for (const std::string& value : values) all += value;
  return all + "e";
}
inline std::string pair(const std::string& a, const std::string& b) { return a + b + "\x86"; }
inline std::string dict(const Fields& fields) {
  std::string all = "}(";
  for (const auto& [key, value] : fields) all += text(key) + value;
  return all + "u";
}
inline std::string whole(const std::string& value) { return "\x80\x02" + value + "."; }

// A call of a process group.
struct Call {
  int64_t number = 1;
  std::string name = "nccl:all_reduce", state = "completed";
  std::string group = "0", description = "default_pg";
  std::vector<int64_t> sizes = {1024, 6400};  // 25 MiB of floats
  int64_t created = 1;                        // unix ns
  bool message = false, retired = false;
  int64_t batch = 0;  // of messages
};

inline std::string frame(const std::string& file, int line) {
  return dict({{"name", text("f")}, {"filename", text(file)}, {"line", number(line)}});
}

inline std::string entry(const Call& call, int64_t record) {
  std::vector<std::string> frames = {frame("/lib/torch/distributed/distributed_c10d.py", 4174),
                                     frame("/data/train.py", 44)};
  for (int line = 0; line < 40; ++line) frames.push_back(frame("/data/main.py", line));
  std::vector<std::string> sizes;
  for (const int64_t size : call.sizes) sizes.push_back(number(size));
  return dict({{"frames", list(frames)},
               {"record_id", number(record)},
               {"pg_id", number(0)},
               {"process_group", pair(text(call.group), text(call.description))},
               {"collective_seq_id", number(call.message ? 0 : call.number)},
               {"p2p_seq_id", number(call.batch)},
               {"profiling_name", text(call.name)},
               {"time_created_ns", number(call.created)},
               {"input_sizes", list({list(sizes)})},
               {"input_dtypes", list({text("Float")})},
               {"state", text(call.state)},
               {"time_discovered_completed_ns", none()},
               {"retired", boolean(call.retired)},
               {"is_p2p", boolean(call.message)}});
}

struct Group {
  std::string name, description, ranks;  // "[0, 1]"
};

// `first`: the record of the first call; not 0 if earlier ones have been overwritten.
inline std::string dump(const std::vector<Group>& groups, const std::vector<Call>& calls,
                        int64_t first = 0) {
  Fields config;
  for (const Group& group : groups) {
    config.emplace_back(group.name, dict({{"name", text(group.name)},
                                          {"desc", text(group.description)},
                                          {"ranks", text(group.ranks)}}));
  }
  std::vector<std::string> entries;
  for (const Call& call : calls) {
    entries.push_back(entry(call, first + static_cast<int64_t>(entries.size())));
  }
  return whole(dict({{"version", text("2.10")},
                     {"pg_config", dict(config)},
                     {"pg_status", dict({})},
                     {"entries", list(entries)}}));
}

// Of the default group of `ranks`: calls up to `entered`, of which those up to `done` are done.
inline std::string dump_at(const std::string& ranks, int64_t entered, int64_t done,
                           int64_t from = 1) {
  std::vector<Call> calls;
  for (int64_t number = from; number <= entered; ++number) {
    calls.push_back({.number = number,
                     .state = number <= done       ? "completed"
                              : number == done + 1 ? "started"
                                                   : "scheduled"});
  }
  return dump({{"0", "default_pg", ranks}}, calls, from - 1);
}

}  // namespace fleet::pickled

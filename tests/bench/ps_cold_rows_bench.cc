// Speed and memory of one sparse table of 16 float32 a row, in memory or with storage rocksdb:
// tests/bench/ps_cold.sh runs both and compares them.
// Links: ps base
//
//   bench_ps_cold_rows STORAGE ROWS CACHED FOLDER
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/process_memory.h"
#include "ps/tables/sparse_table.h"
#include "ps/tables/table_settings.h"

namespace {

constexpr size_t kDim = 16, kBatch = 16'384;
constexpr double kMeasured = 1'000'000;  // ids of a rate

double seconds_of(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Ids are spread over 64 bits, as hashed features are.
uint64_t id_of(uint64_t row) { return row * 0x9e3779b97f4a7c15u; }

// Prints millions of ids a second: by processor time of all threads, and by the clock.
template <typename Body>
void measure(const std::string& name, double ids, Body body) {
  const double cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID), wall = seconds_of(CLOCK_MONOTONIC);
  body();
  std::printf("%s %.3f %.3f\n", name.c_str(),
              ids / 1e6 / (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu),
              ids / 1e6 / (seconds_of(CLOCK_MONOTONIC) - wall));
  std::fflush(stdout);
}

fleet::ps::TableSettings settings_of(const std::string& storage, const std::string& cached,
                                     const std::string& folder) {
  const std::string cold = storage == "memory"
                               ? ""
                               : R"(, "storage": {"kind": ")" + storage + R"(", "cached_rows": )" +
                                     cached + R"(, "path": ")" + folder + "\"}";
  const fleet::ConfigTree tree = fleet::ConfigTree::from_json(
      R"({"tables": {"t": {"dim": 16, "rule": {"name": "naive"})" + cold + "}}}", "bench");
  const fleet::Settings settings = tree.validate(fleet::ps::tables_schema(tree));
  return fleet::ps::table_settings("t", settings.section("tables.t"), 1);
}

int run(char** arguments) {
  const size_t rows = std::stoul(arguments[2]);
  // Nine of ten ids of a batch are among the hot ones.
  const size_t hot = std::max<size_t>(1, std::stoul(arguments[3]) / 2);
  fleet::ps::SparseTable table(settings_of(arguments[1], arguments[3], arguments[4]));
  std::vector<uint64_t> ids(kBatch);
  std::vector<float> values(kBatch * kDim, 0.5f);
  measure("new_rows", static_cast<double>(rows), [&] {
    for (size_t row = 0; row < rows; row += kBatch) {
      for (size_t i = 0; i < kBatch; ++i) ids[i] = id_of(std::min(row + i, rows - 1));
      table.pull(ids, values);
    }
  });
  std::mt19937_64 random(1);
  for (const bool skewed : {false, true}) {
    const std::string kind = skewed ? "_hot" : "_any";
    const auto calls = [&](bool pushes) {
      for (size_t done = 0; done < static_cast<size_t>(kMeasured); done += kBatch) {
        for (uint64_t& id : ids) {
          const uint64_t all = random();
          id = id_of(skewed && all % 10 != 0 ? all / 10 % hot : all / 10 % rows);
        }
        pushes ? table.push(ids, values) : table.pull(ids, values);
      }
    };
    calls(false);  // the hot rows get into memory
    measure("pulls" + kind, kMeasured, [&] { calls(false); });
    measure("pushes" + kind, kMeasured, [&] { calls(true); });
  }
  std::printf("rows %lld\npeak %lld\n", static_cast<long long>(table.counts().rows),
              static_cast<long long>(fleet::process_memory().peak));
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 5) {
    std::cerr << "bench_ps_cold_rows STORAGE ROWS CACHED FOLDER\n";
    return 2;
  }
  try {
    return run(arguments);
  } catch (const fleet::Error& error) {
    std::cerr << error.what() << "\n";
    return fleet::exit_code_for(error.code());
  }
}

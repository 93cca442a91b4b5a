// Speed and memory of one sparse table of 16 float32 a row, in memory or with storage rocksdb:
// tests/bench/ps_cold.sh runs both and compares them.
// Links: ps base
//
//   bench_ps_cold_rows STORAGE ROWS CACHE_MIB FOLDER SECONDS
//
// Creates ROWS rows, then trains batches of uniform ids and of ids by Zipf's law, each for SECONDS.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <functional>
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
constexpr double kLineEvery = 5;  // seconds

double seconds_of(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Ids are spread over 64 bits, as hashed features are.
uint64_t id_of(uint64_t row) { return row * 0x9e3779b97f4a7c15u; }

fleet::ps::TableSettings settings_of(const std::string& storage, const std::string& cache,
                                     const std::string& folder) {
  const std::string cold = storage == "memory"
                               ? ""
                               : R"(, "storage": {"kind": ")" + storage + R"(", "cache_memory": )" +
                                     cache + R"(, "path": ")" + folder + "\"}";
  const fleet::ConfigTree tree = fleet::ConfigTree::from_json(
      R"({"tables": {"t": {"dim": 16, "rule": {"name": "naive"})" + cold + "}}}", "bench");
  const fleet::Settings settings = tree.validate(fleet::ps::tables_schema(tree));
  return fleet::ps::table_settings("t", settings.section("tables.t"), 1);
}

int64_t bytes_below(const std::string& folder) {
  int64_t bytes = 0;
  std::error_code error;  // files come and go
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error)) {
    const auto size = entry.is_regular_file(error) ? entry.file_size(error) : 0;
    if (!error) bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

class Bench {
 public:
  Bench(const std::string& storage, size_t rows, const std::string& cache,
        const std::string& folder)
      : storage_(storage),
        folder_(folder),
        rows_(rows),
        table_(settings_of(storage, cache, folder)) {}

  void create_rows() {
    measure("new_rows", [&](double) {
      if (created_ == rows_) return false;
      const size_t count = std::min(kBatch, rows_ - created_);
      for (size_t i = 0; i < count; ++i) ids_[i] = id_of(created_ + i);
      const std::span<float> values(values_);
      table_.pull(std::span(ids_).first(count), values.first(count * kDim));
      created_ += count;
      done_ += count;
      return true;
    });
  }

  // Steps of training: the rows of a batch are pulled, and their gradients pushed.
  void train(const std::string& name, double seconds, const std::function<uint64_t()>& row) {
    const auto step = [&] {
      for (uint64_t& id : ids_) id = id_of(row());
      table_.pull(ids_, values_);
      table_.push(ids_, gradients_);
      done_ += kBatch;
    };
    const auto until = [&](double end) {
      return [&, end](double passed) {
        step();
        return passed < end;
      };
    };
    run("warming up " + name, until(seconds / 2));  // rows that are used often get into memory
    measure(name, until(seconds));
  }

  void print_totals() const {
    std::printf("rows %lld\npeak %lld\nheld %lld\ndisk %lld\n",
                static_cast<long long>(table_.counts().rows),
                static_cast<long long>(fleet::process_memory().peak), static_cast<long long>(held_),
                static_cast<long long>(disk_));
  }

 private:
  // more(seconds since the begin): does a part; false at the end.
  void run(const std::string& name, const std::function<bool(double)>& more) {
    const double begin = seconds_of(CLOCK_MONOTONIC);
    double line = begin;
    done_ = 0;
    for (bool going = true; going;) {
      going = more(seconds_of(CLOCK_MONOTONIC) - begin);
      const double now = seconds_of(CLOCK_MONOTONIC);
      if (going && now < line + kLineEvery) continue;
      line = now;
      if (storage_ != "memory") disk_ = std::max(disk_, bytes_below(folder_));
      held_ = std::max(held_, table_.counts().bytes);
      std::fprintf(stderr, "%s, %s: %.1f million ids after %.0f s; resident %lld MiB\n",
                   storage_.c_str(), name.c_str(), static_cast<double>(done_) / 1e6, now - begin,
                   static_cast<long long>(fleet::process_memory().resident >> 20));
    }
  }

  // Prints millions of ids a second: by processor time of all threads, and by the clock.
  void measure(const std::string& name, const std::function<bool(double)>& more) {
    const double cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID), wall = seconds_of(CLOCK_MONOTONIC);
    run(name, more);
    const double ids = static_cast<double>(done_) / 1e6;
    std::printf("%s %.4f %.4f\n", name.c_str(), ids / (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu),
                ids / (seconds_of(CLOCK_MONOTONIC) - wall));
    std::fflush(stdout);
  }

  const std::string storage_, folder_;
  const size_t rows_;
  fleet::ps::SparseTable table_;
  std::vector<uint64_t> ids_ = std::vector<uint64_t>(kBatch);
  std::vector<float> values_ = std::vector<float>(kBatch * kDim);
  const std::vector<float> gradients_ = std::vector<float>(kBatch * kDim, 0.5f);
  size_t created_ = 0, done_ = 0;
  int64_t held_ = 0, disk_ = 0;  // the most bytes
};

int run(char** arguments) {
  const size_t rows = std::stoul(arguments[2]);
  const double seconds = std::stod(arguments[5]);
  Bench bench(arguments[1], rows, arguments[3], arguments[4]);
  bench.create_rows();
  std::mt19937_64 random(1);
  // Zipf's law with exponent 1: the logarithm of a row's rank is uniform.
  std::uniform_real_distribution<double> rank(0, std::log(static_cast<double>(rows)));
  bench.train("zipf", seconds,
              [&] { return std::min(rows, static_cast<size_t>(std::exp(rank(random)))) - 1; });
  bench.train("uniform", seconds, [&] { return random() % rows; });
  bench.print_totals();
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 6) {
    std::cerr << "bench_ps_cold_rows STORAGE ROWS CACHE_MIB FOLDER SECONDS\n";
    return 2;
  }
  try {
    return run(arguments);
  } catch (const fleet::Error& error) {
    std::cerr << error.what() << "\n";
    return fleet::exit_code_for(error.code());
  }
}

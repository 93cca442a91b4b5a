// Sparse tables: memory and speed of 10 million rows of 16 float32, next to hash maps of them.
// Links: ps base
// Libraries: absl::flat_hash_map
//
//   bench_ps_table [ROWS [BATCH]]
#include <absl/container/flat_hash_map.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <iostream>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/process_memory.h"
#include "ps/tables/sparse_table.h"
#include "ps/tables/table_settings.h"

namespace {

constexpr size_t kDim = 16;
constexpr double kRowBytes = kDim * sizeof(float);
using Row = std::array<float, kDim>;

struct Result {
  double peak = 0;                         // bytes of memory for a row, the growth included
  double pulls = 0, pushes = 0, adds = 0;  // millions a second and core
};

double cpu_seconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double peak_bytes() { return static_cast<double>(fleet::process_memory().peak); }

// Ids of a batch are spread over 64 bits, as hashed features are.
uint64_t id_of(uint64_t row) { return row * 0x9e3779b97f4a7c15u; }

class Measured {
 public:
  Measured(size_t rows, size_t batch) : rows_(rows), batch_(batch), values_(batch * kDim, 0.5f) {}

  // pull and push: of a batch of ids; both create rows.
  using Call = std::function<void(const std::vector<uint64_t>&, std::vector<float>&)>;
  Result run(const Call& pull, const Call& push) {
    std::vector<uint64_t> ids(batch_);
    const double before = peak_bytes(), start = cpu_seconds();
    for (size_t row = 0; row < rows_; row += batch_) {
      for (size_t i = 0; i < batch_; ++i) ids[i] = id_of(std::min(row + i, rows_ - 1));
      pull(ids, values_);
    }
    Result result;
    result.adds = static_cast<double>(rows_) / 1e6 / (cpu_seconds() - start);
    result.peak = (peak_bytes() - before) / static_cast<double>(rows_);
    result.pulls = speed(pull);
    result.pushes = speed(push);
    return result;
  }

 private:
  double speed(const Call& call) {
    std::mt19937_64 random(1);
    std::vector<uint64_t> ids(batch_);
    double seconds = 0;
    size_t done = 0;
    while (done < rows_) {
      for (uint64_t& id : ids) id = id_of(random() % rows_);
      const double start = cpu_seconds();
      call(ids, values_);
      seconds += cpu_seconds() - start;
      done += batch_;
    }
    return static_cast<double>(done) / 1e6 / seconds;
  }

  const size_t rows_, batch_;
  std::vector<float> values_;
};

Result measure_ours(Measured& measured, bool huge_pages) {
  const fleet::ConfigTree tree = fleet::ConfigTree::from_json(
      R"({"tables": {"t": {"dim": 16, "rule": {"name": "naive"}, "storage": {"huge_pages": )" +
          std::string(huge_pages ? "true" : "false") + "}}}}",
      "bench");
  const fleet::Settings settings = tree.validate(fleet::ps::tables_schema(tree));
  fleet::ps::SparseTable table(fleet::ps::table_settings("t", settings.section("tables.t"), 1));
  return measured.run(
      [&](const std::vector<uint64_t>& ids, std::vector<float>& rows) { table.pull(ids, rows); },
      [&](const std::vector<uint64_t>& ids, std::vector<float>& rows) { table.push(ids, rows); });
}

template <typename Map>
Result measure_map(Measured& measured) {
  Map map;
  return measured.run(
      [&](const std::vector<uint64_t>& ids, std::vector<float>& rows) {
        for (size_t i = 0; i < ids.size(); ++i) {
          std::memcpy(&rows[i * kDim], map[ids[i]].data(), sizeof(Row));
        }
      },
      [&](const std::vector<uint64_t>& ids, std::vector<float>& rows) {
        for (size_t i = 0; i < ids.size(); ++i) {
          Row& row = map[ids[i]];
          for (size_t j = 0; j < kDim; ++j) row[j] -= 0.05f * rows[i * kDim + j];
        }
      });
}

// In a process of its own, so that peaks do not add up.
Result measure(size_t rows, size_t batch, const std::function<Result(Measured&)>& body) {
  int ends[2];
  if (::pipe(ends) != 0) fleet::throw_errno("cannot make a pipe");
  const pid_t child = ::fork();
  if (child < 0) fleet::throw_errno("cannot start a process");
  if (child == 0) {
    Measured measured(rows, batch);
    const Result result = body(measured);
    const bool written = ::write(ends[1], &result, sizeof result) == sizeof result;
    ::_exit(written ? 0 : 1);
  }
  ::close(ends[1]);
  Result result;
  const bool whole = ::read(ends[0], &result, sizeof result) == sizeof result;
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  if (!whole) throw fleet::Error(fleet::ErrorCode::kInternal, "a measurement has failed");
  return result;
}

void print(const std::string& name, double ours, const std::string& peer, double theirs,
           const std::string& unit) {
  std::printf("%s: ratio %.3f (ours %.1f %s, %s %.1f %s)\n", name.c_str(), ours / theirs, ours,
              unit.c_str(), peer.c_str(), theirs, unit.c_str());
  std::fflush(stdout);
}

int run(int count, char** arguments) {
  const size_t rows = count > 1 ? std::stoul(arguments[1]) : 10'000'000;
  const size_t batch = count > 2 ? std::stoul(arguments[2]) : 16'384;
  const auto ours = [&](bool huge_pages) {
    return measure(rows, batch, [=](Measured& m) { return measure_ours(m, huge_pages); });
  };
  const Result table = ours(false), huge = ours(true);
  const Result absl = measure(rows, batch, measure_map<absl::flat_hash_map<uint64_t, Row>>);
  const Result standard = measure(rows, batch, measure_map<std::unordered_map<uint64_t, Row>>);
  const std::pair<const char*, const Result&> peers[] = {{"absl::flat_hash_map", absl},
                                                         {"std::unordered_map", standard}};
  print("table_bytes_a_row", table.peak, "the row's", kRowBytes, "B");
  for (const auto& [name, peer] : peers) {
    print("table_bytes_a_row", table.peak, name, peer.peak, "B");
    print("table_new_rows", table.adds, name, peer.adds, "M/s");
    print("table_pulls", table.pulls, name, peer.pulls, "M/s");
    print("table_pushes", table.pushes, name, peer.pushes, "M/s");
  }
  print("table_huge_pages_bytes_a_row", huge.peak, "without", table.peak, "B");
  print("table_huge_pages_pulls", huge.pulls, "without", table.pulls, "M/s");
  print("table_huge_pages_pushes", huge.pushes, "without", table.pushes, "M/s");
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run(count, arguments);
  } catch (const fleet::Error& error) {
    std::cerr << error.what() << "\n";
    return fleet::exit_code_for(error.code());
  }
}

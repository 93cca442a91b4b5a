// Reads Criteo's rows, against a bound: reading the same bytes and counting their lines.
// Links: data base
//
//   bench_clicks [ROWS]            # 300,000 by default
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/error.h"
#include "base/file.h"
#include "data/pipeline.h"
#include "data/random.h"
#include "tests/bench/times.h"

namespace {

using fleet::processor_seconds;
using fleet::data::RandomStream;

// Fields as long as Criteo's; a fifth of the integers and an eighth of the categories are missing.
void write_rows(const std::string& path, int64_t rows) {
  std::ofstream file(path, std::ios::binary);
  RandomStream random(1, "clicks_bench");
  char text[16];
  for (int64_t row = 0; row < rows; ++row) {
    std::string line(1, random.uniform() < 0.25 ? '1' : '0');
    for (int i = 0; i < 13; ++i) {
      line += '\t';
      if (random.uniform() > 0.2) line += std::to_string(random.below(i == 4 ? 60'000 : 200));
    }
    for (int i = 0; i < 26; ++i) {
      std::snprintf(text, sizeof text, "\t%08x", random.bits());
      line += random.uniform() > 0.125 ? text : "\t";
    }
    file << line << '\n';
  }
}

void report(const char* what, double rows, double seconds, double bound) {
  std::cout << what << ": " << static_cast<int64_t>(rows / seconds / 1000) << " k rows/s a core";
  if (bound > 0) std::cout << ", " << seconds / bound << " x the time of counting lines";
  std::cout << "\n";
}

double count_lines(const std::string& path) {
  const double start = processor_seconds();
  const std::string text = fleet::read_file(path);
  const auto lines = std::count(text.begin(), text.end(), '\n');
  const double seconds = processor_seconds() - start;
  std::cout << lines << " lines, " << static_cast<double>(text.size()) / 1e6 << " MB\n";
  return seconds;
}

std::unique_ptr<fleet::data::Source> open(const std::string& source, const std::string& json) {
  const auto tree = fleet::ConfigTree::from_json(json, "bench");
  return fleet::data::open_split(tree.validate(fleet::data::data_schema(source)), true, false, {});
}

double fill_all(const fleet::data::Source& source, bool shuffled) {
  std::vector<int64_t> order(static_cast<size_t>(source.size()));
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); shuffled && i > 1; --i) {
    std::swap(order[i - 1], order[fleet::data::mix(i) % i]);
  }
  std::vector<std::vector<std::byte>> columns;
  std::vector<void*> to;
  for (const fleet::Column& column : source.columns()) {
    columns.emplace_back(column.shape.elements() * fleet::size_of(column.dtype));
    to.push_back(columns.back().data());
  }
  const double start = processor_seconds();
  for (const int64_t row : order) source.fill(row, 0, to);
  return processor_seconds() - start;
}

void run(int64_t rows) {
  const std::string path = std::filesystem::temp_directory_path().string() + "/clicks_bench." +
                           std::to_string(::getpid());
  write_rows(path, rows);
  const double bound = count_lines(path);
  const double start = processor_seconds();
  const auto criteo = open("criteo", R"({"train": {"file": ")" + path + R"("}})");
  const auto count = static_cast<double>(rows);
  report("criteo, opened and checked", count, processor_seconds() - start, bound);
  report("criteo, rows in order", count, fill_all(*criteo, false), bound);
  report("criteo, rows in random order", count, fill_all(*criteo, true), bound);
  std::filesystem::remove(path);
  for (const char* more : {"", R"(, "interaction": true)"}) {
    const auto made =
        open("synthetic_clicks", R"({"slot_count": 26, "dense": 13, "train": {"samples": )" +
                                     std::to_string(rows) + "}" + more + "}");
    report(*more ? "synthetic_clicks with pairs" : "synthetic_clicks", count,
           fill_all(*made, false), 0);
  }
}

}  // namespace

int main(int count, char** arguments) {
  try {
    run(count > 1 ? std::atoll(arguments[1]) : 300'000);
    return 0;
  } catch (const fleet::Error& error) {
    std::cerr << error.what() << "\n";
    return fleet::exit_code_for(error.code());
  }
}

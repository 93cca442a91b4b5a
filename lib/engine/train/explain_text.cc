// The explanation of a job for people, 80 columns wide.
#include <algorithm>
#include <cmath>

#include "base/counted.h"
#include "base/number_text.h"
#include "base/text.h"
#include "base/text_table.h"
#include "exec/backend.h"
#include "train/explain.h"

namespace fleet {
namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr size_t kColumns = 80;

std::string bytes_text(double bytes) {
  constexpr double kKiB = 1 << 10, kMiB = 1 << 20, kGiB = 1 << 30;
  const double size = std::abs(bytes);
  if (size >= kGiB) return format_printf("%.2f GiB", bytes / kGiB);
  if (size >= kMiB) return format_printf("%.1f MiB", bytes / kMiB);
  return format_printf("%.1f KiB", bytes / kKiB);
}
std::string bytes_text(size_t bytes) { return bytes_text(static_cast<double>(bytes)); }

std::string seconds_text(double seconds) {
  if (seconds >= 1) return format_printf("%.2f s", seconds);
  return seconds >= 1e-3 ? format_printf("%.1f ms", seconds * 1e3)
                         : format_printf("%.0f us", seconds * 1e6);
}

std::string count_text(double number) {
  if (number >= 1e6) return format_printf("%.1f million", number / 1e6);
  return format_printf("%.0f", number);
}

// Breaks a line at blanks; further lines begin with `indent` blanks.
std::string wrapped(const std::string& text, size_t indent) {
  const size_t begin = std::min(text.find_first_not_of(' '), text.size());
  std::string out, line = text.substr(0, begin);
  bool fresh = true;
  for (const std::string& word : split(std::string_view(text).substr(begin), ' ')) {
    if (!fresh && line.size() + 1 + word.size() > kColumns) {
      out += line + "\n";
      line = std::string(indent, ' ');
      fresh = true;
    }
    line += (fresh ? "" : " ") + word;
    fresh = false;
  }
  return out + line + "\n";
}

std::string head(const Explanation& job) {
  std::string text = job.model + ", batch " + std::to_string(job.batch) + " a rank, " +
                     counted(job.ranks, "rank") + " on " + counted(job.nodes, "node") + ", " +
                     job.backend;
  if (backend_def(job.backend).uses_host_cores)
    text += " (" + counted(job.threads, "core") + " a rank)";
  std::string out = wrapped(text, 2);
  out += "parameters: " + count_text(static_cast<double>(job.parameters));
  if (job.trainable != job.parameters) {
    out += ", of which " + count_text(static_cast<double>(job.trainable)) + " are trained";
  }
  return out + "\n";
}

std::string operations(const Explanation& job) {
  Rows rows = {{"operations", "before", "after"}};
  for (const PassStep& step : job.steps) {
    rows.push_back({step.name, std::to_string(step.before), std::to_string(step.after)});
  }
  rows.push_back({"Plan, with reorders", "", std::to_string(job.operations)});
  rows.push_back({"of them in a training step", "", std::to_string(job.training_operations)});
  return format_table(rows, "  ");
}

// What to change in a job that does not fit.
std::string batch_to_try(const Explanation& job) {
  if (*job.fitting_batch > 0) {
    return "data.batch_size=" + std::to_string(*job.fitting_batch) + " would fit";
  }
  return std::string("not even data.batch_size=1 would fit: use a smaller model") +
         (job.cost.length > 0 ? ", or a smaller data.sequence_length" : "");
}

std::string memory(const Explanation& job) {
  const ExplainedMemory& memory = job.cost.memory;
  Rows rows = {{"memory of a rank", ""}};
  const auto add = [&](const char* kind, size_t bytes) {
    if (bytes > 0) rows.push_back({kind, bytes_text(bytes)});
  };
  add("parameters", memory.planned.parameters);
  add("optimizer state", memory.planned.states);
  add("gradients", memory.planned.gradients);
  add("activations", memory.planned.activations);
  add("workspace", memory.planned.workspace);
  add("feeds", memory.planned.feeds);
  add("communication", memory.communication);
  add("input", memory.input);
  add("kernels", memory.kernels);
  add("initial values, at the start", memory.start);
  add("program and libraries", memory.process);
  rows.push_back({"total", bytes_text(memory.total())});
  if (memory.planned.host > 0) {
    rows.push_back({"and host memory", bytes_text(memory.planned.host)});
  }
  std::string out = format_table(rows, "  ");
  if (job.available_bytes > 0) {
    const bool fits = memory.total() <= job.available_bytes;
    out += std::string("  ") + (fits ? "fits: " : "DOES NOT FIT: ") +
           bytes_text(job.available_bytes) + " are available to a rank\n";
    if (job.fitting_batch) out += "  " + batch_to_try(job) + "\n";
  }
  return out;
}

// "all_reduce 16.1 MiB, 2 x 8.0 MiB": equal neighbours together.
std::string messages(const ExplainedGroup& group) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < group.bytes.size();) {
    size_t end = i;
    const auto same = [&](size_t k) {
      return group.types[k] == group.types[i] &&
             bytes_text(group.bytes[k]) == bytes_text(group.bytes[i]);
    };
    while (end < group.bytes.size() && same(end)) ++end;
    const bool named = i == 0 || group.types[i] != group.types[i - 1];
    parts.push_back((named ? group.types[i] + " " : "") +
                    (end - i > 1 ? std::to_string(end - i) + " x " : "") +
                    bytes_text(group.bytes[i]));
    i = end;
  }
  return join(parts, ", ");
}

std::string communication(const Explanation& job) {
  if (job.groups.empty()) return "communication: none\n";
  std::string out = "communication\n";
  for (const ExplainedGroup& group : job.groups) {
    out += wrapped("  " + group.name + ", " + group.transport + ": " + messages(group), 4);
  }
  if (job.cost.time) {
    out += "  a step sends " + bytes_text(job.cost.time->within) + " within the node, " +
           bytes_text(job.cost.time->between) + " to other nodes (mean rank)\n";
  }
  return out;
}

std::string time(const Explanation& job) {
  if (!job.cost.time) return "time of a step: unknown; --explain measures this machine\n";
  const StepTime& time = *job.cost.time;
  const MachineRates& rates = *job.rates;
  std::string out = rates.estimate ? "time of a step: ESTIMATE, at least " : "time of a step: ";
  out += seconds_text(time.total) +
         format_printf(", %.1f %s/s over all ranks\n",
                       job.cost.images_per_second * double(std::max<int64_t>(job.cost.length, 1)),
                       job.cost.length > 0 ? "tokens" : "images");
  if (time.band) {
    const std::string band =
        "  between " + seconds_text(time.band->low) + " and " + seconds_text(time.band->high);
    out += wrapped(band + ": " + band_source(), 4);
  }
  Rows rows = {{"compute", seconds_text(time.compute)},
               {"communication", seconds_text(time.communication)},
               {"of it hidden", seconds_text(time.hidden)}};
  if (!time.stages.empty()) rows.push_back({"waiting for stages", seconds_text(time.waiting)});
  rows.push_back({"host and input", seconds_text(time.host)});
  out += format_table(rows, "  ");
  if (!time.stages.empty()) {
    std::vector<std::string> stages;
    for (const double compute : time.stages) stages.push_back(seconds_text(compute));
    out += wrapped("  stages compute " + join(stages, ", "), 4);
  }
  std::vector<std::pair<double, std::string>> types;
  double all = 0;
  for (const auto& [type, seconds] : time.by_type) {
    types.emplace_back(seconds, type);
    all += seconds;
  }
  std::sort(types.rbegin(), types.rend());
  std::vector<std::string> shares;
  for (size_t i = 0; i < std::min<size_t>(types.size(), 4); ++i) {
    const double share = 100 * types[i].first / std::max(all, 1e-12);
    shares.push_back(types[i].second + format_printf(" %.0f %%", share));
  }
  out += wrapped("  compute is " + join(shares, ", "), 4);
  out += wrapped(
      std::string("  most of it is bound by ") + (time.compute_bound ? "arithmetic" : "memory"), 4);
  if (!job.input_seconds) out += "  reading and decoding the data is not included\n";
  return out;
}

std::string lengths_text(const Explanation& job) {
  if (job.lengths.empty()) return {};
  Rows rows = {{"length of rows", "activations", "time of a step"}};
  for (const LengthCost& cost : job.lengths) {
    rows.push_back({std::to_string(cost.length), bytes_text(cost.planned.activations),
                    cost.time ? seconds_text(cost.time->total) : "-"});
  }
  return format_table(rows, "  ") +
         "  the plans share memory; all else here is for the longest rows\n";
}

std::string rates_text(const Explanation& job) {
  if (!job.rates) return {};
  const MachineRates& rates = *job.rates;
  std::string text = "rates: " + rates.device + ", " + rates.origin + ":";
  for (const auto& [type, rate] : rates.peak) {
    text += rate >= 1e12 ? format_printf(" %.0f TFLOP/s", rate / 1e12)
                         : format_printf(" %.0f GFLOP/s", rate / 1e9);
    text += " " + type + ",";
  }
  text += format_printf(" %.1f GB/s of memory", rates.bytes_per_second / 1e9);
  if (job.nodes > 1) {
    text += format_printf(", %.2f GB/s between nodes", job.topology.link_bytes / 1e9);
  }
  std::string out = wrapped(text, 2);
  if (rates.estimate) {
    out += wrapped(
        "estimate: the roofline of the card's nominal rates, a lower bound of the time; real "
        "kernels take longer, and workspace of the card's libraries is unknown",
        2);
  }
  return out;
}

std::string what_if(const Explanation& job) {
  if (job.what_if.empty()) return {};
  Rows rows = {{"with one more option", "memory", "time"}};
  std::string obstacles;
  for (const WhatIf& variant : job.what_if) {
    if (!variant.obstacle.empty()) {
      obstacles += wrapped("  " + variant.option + ": not possible: " + variant.obstacle, 4);
      continue;
    }
    const double memory = static_cast<double>(variant.cost.memory.total()) -
                          static_cast<double>(job.cost.memory.total());
    std::string time = "-";
    if (variant.cost.time && job.cost.time) {
      time = format_printf("%+.0f %%", 100 * (variant.cost.time->total / job.cost.time->total - 1));
    }
    rows.push_back({variant.option, (memory < 0 ? "" : "+") + bytes_text(memory), time});
  }
  return (rows.size() > 1 ? format_table(rows, "  ") : "") + obstacles;
}

std::string choices_text(const Explanation& job) {
  std::string out;
  for (const StrategyChoice& choice : job.choices) {
    out += wrapped(
        "auto: " + (choice.override.empty() ? "" : choice.override + ": ") + choice.reason, 2);
  }
  return out.empty() ? out : "\n" + out;
}

}  // namespace

std::string band_source() {
  return format_printf(
      "for several ranks of a node, predictions were %.2f to %.2f times the measured step "
      "(docs/performance/predictions.md); the band has %.0f %% more at both ends",
      kLeastPrediction, kGreatestPrediction, 100 * kBandMargin);
}

std::string explanation_text(const Explanation& job) {
  return head(job) + choices_text(job) + "\n" + operations(job) + "\n" + memory(job) + "\n" +
         communication(job) + "\n" + time(job) + lengths_text(job) + rates_text(job) +
         (job.what_if.empty() ? "" : "\n") + what_if(job);
}

}  // namespace fleet

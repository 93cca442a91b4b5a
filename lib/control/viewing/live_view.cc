#include "viewing/live_view.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "base/json.h"
#include "base/number_text.h"
#include "diagnosis/bottleneck.h"
#include "diagnosis/gpu_throttling.h"
#include "viewing/live_columns.h"

namespace fleet {
namespace {

using wire::GpuUsage;
using wire::LiveRank;

// "950M", "12.3G"
std::string bytes_text(double bytes) {
  const double mib = bytes / (1 << 20);
  if (mib < 1000) return format_printf("%.0fM", mib);
  return format_printf("%.*fG", mib < 100 * 1024 ? 1 : 0, mib / 1024);
}

std::string percent(double share) { return format_printf("%.0f", 100 * share); }

// The sum or the maximum over the GPUs of a rank that report a value.
template <typename Has, typename Get>
std::optional<double> over_gpus(const LiveRank& rank, Has has, Get get, bool sum) {
  std::optional<double> all;
  for (const GpuUsage& gpu : rank.gpus()) {
    if (!(gpu.*has)()) continue;
    const auto value = static_cast<double>((gpu.*get)());
    all = !all ? value : sum ? *all + value : std::max(*all, value);
  }
  return all;
}

std::optional<double> gpu_utilization(const LiveRank& rank) {
  const auto sum = over_gpus(rank, &GpuUsage::has_utilization, &GpuUsage::utilization, true);
  return sum ? std::optional(*sum / rank.gpus_size()) : std::nullopt;
}

uint64_t throttle_reasons(const LiveRank& rank) {
  uint64_t reasons = 0;
  for (const GpuUsage& gpu : rank.gpus()) reasons |= gpu.throttled();
  return reasons;
}

// 1 if the clock of one of its GPUs is lowered.
std::optional<double> throttling(const LiveRank& rank) {
  bool any = false;
  for (const GpuUsage& gpu : rank.gpus()) any = any || gpu.has_throttled();
  if (!any) return std::nullopt;
  return throttle_text(throttle_reasons(rank)).empty() ? 0 : 1;
}

std::string throttled(const LiveRank& rank) {
  const std::string text = throttle_text(throttle_reasons(rank));
  return throttling(rank) && text.empty() ? "no" : text;
}

template <auto kHas, auto kGet>
std::optional<double> value_of(const LiveRank& rank) {
  if (!(rank.*kHas)()) return std::nullopt;
  return static_cast<double>((rank.*kGet)());
}

std::string whole(double value) { return format_printf("%.0f", value); }

std::optional<double> queue_of(const LiveRank& rank) {
  if (!rank.servers().has_queued()) return std::nullopt;
  return rank.servers().queued();
}

std::optional<double> staleness_of(const LiveRank& rank) {
  if (!rank.servers().has_stale()) return std::nullopt;
  return rank.servers().stale();
}

std::optional<double> node_of(const LiveRank& rank) { return rank.node_rank(); }

std::string node_label(const LiveRow& row) {
  return row.kind == LiveRow::Kind::kAll ? "" : std::to_string(row.values->node_rank());
}

}  // namespace

std::string live_rank_label(const LiveRow& row) {
  if (row.kind == LiveRow::Kind::kAll) return "all";
  const LiveRank& rank = *row.values;
  const bool node = row.kind == LiveRow::Kind::kNode;
  return (rank.server() ? "s" : "") + std::to_string(node ? rank.node_rank() : rank.rank()) +
         (rank.slowest() ? "*" : "");
}

std::span<const LiveColumn> live_columns() {
  static const LiveColumn all[] = {
      {"RANK", "rank", 'r', LiveColumn::kAlways,
       [](const LiveRank& rank) { return std::optional<double>(rank.rank()); }, whole,
       live_rank_label},
      {"NODE", "node", 'n', 30, node_of, whole, node_label},
      {"STEP", "step", 's', 90, value_of<&LiveRank::has_step, &LiveRank::step>, whole},
      {"STEP ms", "ms", 'm', 89, value_of<&LiveRank::has_step_ms, &LiveRank::step_ms>,
       [](double ms) { return format_printf("%.*f", ms < 100 ? 1 : 0, ms); }},
      {"SAMPLES/s", "samples", 'S', 70,
       value_of<&LiveRank::has_samples_per_second, &LiveRank::samples_per_second>,
       [](double rate) { return format_printf("%.*f", rate < 100 ? 1 : 0, rate); }},
      {"INPUT%", "input", 'i', 88, value_of<&LiveRank::has_input_share, &LiveRank::input_share>,
       percent},
      {"PEERS%", "peers", 'p', 87, value_of<&LiveRank::has_exposed_share, &LiveRank::exposed_share>,
       percent},
      // Of trainers that run apart on parameter servers.
      {"QUEUE", "queue", 'u', 85, queue_of, [](double n) { return format_printf("%.1f", n); }},
      {"STALE", "stale", 'a', 84, staleness_of, [](double n) { return format_printf("%.1f", n); }},
      {"LOSS", "loss", 'l', 60, value_of<&LiveRank::has_loss, &LiveRank::loss>,
       [](double loss) { return number_text(loss, kLiveLossDigits); }},
      {"CPU%", "cpu", 'c', 80, value_of<&LiveRank::has_cpu, &LiveRank::cpu>, percent},
      {"RSS", "memory", 'M', 79, value_of<&LiveRank::has_memory, &LiveRank::memory>, bytes_text},
      {"GPU%", "gpu", 'g', 86, gpu_utilization, whole},
      {"GPU MEM", "gpu_memory", 'G', 78,
       [](const LiveRank& rank) {
         return over_gpus(rank, &GpuUsage::has_memory_used, &GpuUsage::memory_used, true);
       },
       bytes_text},
      {"MHz", "mhz", 'h', 50,
       [](const LiveRank& rank) {
         return over_gpus(rank, &GpuUsage::has_clock_mhz, &GpuUsage::clock_mhz, false);
       },
       whole},
      {"W", "watts", 'w', 51,
       [](const LiveRank& rank) {
         return over_gpus(rank, &GpuUsage::has_power_watts, &GpuUsage::power_watts, true);
       },
       whole},
      {"C", "celsius", 't', 52,
       [](const LiveRank& rank) {
         return over_gpus(rank, &GpuUsage::has_celsius, &GpuUsage::celsius, false);
       },
       whole},
      {"SLOWED BY", "slowed", 'b', 53, throttling, whole,
       [](const LiveRow& row) { return throttled(*row.values); }},
  };
  return all;
}

std::vector<const LiveRank*> sorted_ranks(const LiveReport& report, const std::string& key) {
  std::vector<const LiveRank*> ranks;
  for (const LiveRank& rank : report.ranks()) ranks.push_back(&rank);
  sort_ranks(live_columns(), key, &ranks);
  return ranks;
}

void sort_ranks(std::span<const LiveColumn> columns, const std::string& key,
                std::vector<const LiveRank*>* ranks) {
  const auto column =
      std::ranges::find_if(columns, [&](const LiveColumn& one) { return key == one.key; });
  if (key == "rank" || column == columns.end()) return;  // as they come
  const bool ascending = key == "node";
  std::ranges::stable_sort(*ranks, [&](const LiveRank* a, const LiveRank* b) {
    const auto one = column->value(*a), other = column->value(*b);
    if (!one || !other) return one.has_value() && !other.has_value();
    return ascending ? *one < *other : *one > *other;
  });
}

namespace {

template <typename Value>
Json known(bool has, Value value) {
  return has ? Json(value) : Json(nullptr);
}

Json gpu_json(const GpuUsage& gpu) {
  return {{"id", gpu.id()},
          {"utilization", known(gpu.has_utilization(), gpu.utilization())},
          {"memory_used", known(gpu.has_memory_used(), gpu.memory_used())},
          {"memory_total", known(gpu.has_memory_total(), gpu.memory_total())},
          {"clock_mhz", known(gpu.has_clock_mhz(), gpu.clock_mhz())},
          {"power_watts", known(gpu.has_power_watts(), gpu.power_watts())},
          {"celsius", known(gpu.has_celsius(), gpu.celsius())},
          {"slowed_by", known(gpu.has_throttled(), throttle_text(gpu.throttled()))}};
}

Json rank_json(const LiveRank& rank) {
  Json all = {
      {"role", rank.server() ? "server" : "trainer"},
      {"rank", rank.rank()},
      {"local_rank", rank.local_rank()},
      {"node_rank", rank.node_rank()},
      {"slowest", rank.slowest()},
      {"step", known(rank.has_step(), rank.step())},
      {"step_ms", known(rank.has_step_ms(), rank.step_ms())},
      {"samples_per_second", known(rank.has_samples_per_second(), rank.samples_per_second())},
      {"input_share", known(rank.has_input_share(), rank.input_share())},
      {"peers_share", known(rank.has_exposed_share(), rank.exposed_share())},
      {"loss", known(rank.has_loss(), rank.loss())},
      {"cpu", known(rank.has_cpu(), rank.cpu())},
      {"memory", known(rank.has_memory(), rank.memory())},
      {"without_core", known(rank.has_delayed(), rank.delayed())}};
  all["gpus"] = Json::array();
  for (const GpuUsage& gpu : rank.gpus()) all["gpus"].push_back(gpu_json(gpu));
  if (rank.has_serving()) all["serving"] = server_json(rank.serving());
  if (rank.has_servers()) all["servers"] = server_use_json(rank.servers());
  return all;
}

}  // namespace

const std::vector<std::string>& live_sort_keys() {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> all;
    for (const LiveColumn& column : live_columns()) all.emplace_back(column.key);
    return all;
  }();
  return keys;
}

std::string live_json(const LiveReport& report, const std::string& sort, double now) {
  Json all;
  all["time"] = std::round(now * 1000) / 1000;
  all["job_id"] = report.job_id();
  all["generation"] = report.generation();
  all["nnodes"] = report.nnodes();
  all["world_size"] = report.world_size();
  all["running"] = static_cast<double>(report.running_ms()) / 1000;
  all["step"] = known(report.has_step(), report.step());
  all["target"] = known(report.has_target(), report.target());
  all["loss"] = known(report.has_loss(), report.loss());
  all["accuracy"] = known(report.has_accuracy(), report.accuracy());
  all["evaluation_accuracy"] =
      known(report.has_evaluation_accuracy(), report.evaluation_accuracy());
  all["seconds_left"] = known(report.has_seconds_left(), report.seconds_left());
  all["bottleneck"] = nullptr;
  if (report.has_bottleneck()) all["bottleneck"] = bottleneck_json(report.bottleneck());
  all["ranks"] = Json::array();
  for (const LiveRank* rank : sorted_ranks(report, sort)) all["ranks"].push_back(rank_json(*rank));
  return all.dump_lossy() + "\n";
}

}  // namespace fleet

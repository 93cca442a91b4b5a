#include "launch/starting/metrics_server.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "base/log.h"
#include "diagnosis/bottleneck.h"
#include "launch/planning/addresses.h"
#include "transport/http_server.h"
#include "transport/security.h"

namespace fleet {
namespace {

using wire::GpuUsage;
using wire::LiveRank;
using wire::LiveServer;
using wire::LiveServerUse;
using wire::LiveTable;

constexpr char kType[] = "text/plain; version=0.0.4; charset=utf-8";

constexpr int kFullGpus = 2, kBriefGpus = 9;  // per rank: at most 10 + 2 * 9 series
constexpr int kMostTables = 2;  // with them, a server has at most 3 + 12 + 4 * 2 series

// A value of a label, as the format wants it. Names of others may contain anything.
std::string escaped_label(const std::string& text) {
  std::string all;
  for (const char c : text) {
    if (c == '\\' || c == '"') all += '\\';
    if (c == '\n') {
      all += "\\n";
    } else {
      all += static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > '~' ? '?' : c;
    }
  }
  return all;
}

std::string metric_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

class Writer {
 public:
  explicit Writer(const std::string& job_id) : job_("job_id=\"" + escaped_label(job_id) + "\"") {}

  // The series that follow have this name.
  void family(const char* name, const char* help) {
    name_ = name;
    header_ = std::string("# HELP fleetrun_") + name + " " + help + "\n# TYPE fleetrun_" + name +
              " gauge\n";
  }
  // labels: ",rank=\"3\""
  void add(double value, const std::string& labels = {}) {
    text_ += std::exchange(header_, {});
    text_ += "fleetrun_" + name_ + "{" + job_ + labels + "} " + metric_number(value) + "\n";
  }
  const std::string& text() const { return text_; }

 private:
  const std::string job_;
  std::string name_, header_, text_;
};

// A value of a rank or a GPU.
template <typename Message>
struct Series {
  const char *name, *help;
  std::optional<double> (*value)(const Message&);
  bool brief = true;  // also of ranks with many GPUs
};

// The field times `kFactor`, if the message has it.
template <auto kHas, auto kGet, int kFactor = 1>
constexpr auto metric_value = [](const auto& message) -> std::optional<double> {
  if (!(message.*kHas)()) return std::nullopt;
  return static_cast<double>((message.*kGet)()) * kFactor;
};

constexpr Series<LiveRank> kRankSeries[] = {
    {"rank_step", "Last finished step.", metric_value<&LiveRank::has_step, &LiveRank::step>},
    {"rank_step_seconds", "Time of a step, without evaluations and saves.",
     [](const LiveRank& rank) {
       return rank.has_step_ms() ? std::optional(rank.step_ms() / 1000) : std::nullopt;
     }},
    {"rank_samples_per_second", "Samples trained in a second.",
     metric_value<&LiveRank::has_samples_per_second, &LiveRank::samples_per_second>},
    {"rank_input_ratio", "Share of the step in which the rank waits for input.",
     metric_value<&LiveRank::has_input_share, &LiveRank::input_share>},
    {"rank_peers_ratio", "Share of the step in which the rank waits for collectives.",
     metric_value<&LiveRank::has_exposed_share, &LiveRank::exposed_share>},
    {"rank_loss", "Last loss.", metric_value<&LiveRank::has_loss, &LiveRank::loss>},
    {"rank_slowest", "1 for the rank that the others wait for.",
     metric_value<&LiveRank::has_exposed_share, &LiveRank::slowest>},
    {"rank_cpu_cores", "Cores in use by the processes of the rank.",
     metric_value<&LiveRank::has_cpu, &LiveRank::cpu>},
    {"rank_memory_bytes", "Resident memory of the processes of the rank.",
     metric_value<&LiveRank::has_memory, &LiveRank::memory>},
    {"rank_without_core_ratio", "Share of the time in which its first thread had no core.",
     metric_value<&LiveRank::has_delayed, &LiveRank::delayed>},
};

// For a trainer on parameter servers.
template <auto kHas, auto kGet>
constexpr auto use_value = [](const LiveRank& rank) -> std::optional<double> {
  if (!(rank.servers().*kHas)()) return std::nullopt;
  return (rank.servers().*kGet)();
};

constexpr Series<LiveRank> kUseSeries[] = {
    {"rank_push_wait_ratio", "Share of the step in which a trainer waits for its queue of pushes.",
     use_value<&LiveServerUse::has_push_share, &LiveServerUse::push_share>},
    {"rank_values_wait_ratio", "Share of the step in which a trainer waits for values of servers.",
     use_value<&LiveServerUse::has_values_share, &LiveServerUse::values_share>},
    {"rank_rows_wait_ratio", "Share of the step in which a trainer waits for rows of tables.",
     use_value<&LiveServerUse::has_rows_share, &LiveServerUse::rows_share>},
    {"rank_pushed_bytes_per_second", "Bytes sent to servers in a second of its steps.",
     use_value<&LiveServerUse::has_sent, &LiveServerUse::sent>},
    {"rank_pulled_bytes_per_second", "Bytes received from servers in a second of its steps.",
     use_value<&LiveServerUse::has_received, &LiveServerUse::received>},
    {"rank_push_queue", "Pushes that wait in the queue of a trainer.",
     use_value<&LiveServerUse::has_queued, &LiveServerUse::queued>},
    {"rank_staleness_steps", "Steps beyond those of the slowest trainer in the values in use.",
     use_value<&LiveServerUse::has_stale, &LiveServerUse::stale>},
};

template <auto kHas, auto kGet>
constexpr auto served_value = [](const LiveRank& rank) -> std::optional<double> {
  if (!(rank.serving().*kHas)()) return std::nullopt;
  return (rank.serving().*kGet)();
};

constexpr Series<LiveRank> kServerSeries[] = {
    {"server_pushes_per_second", "Pushes of gradients received in a second.",
     served_value<&LiveServer::has_pushes, &LiveServer::pushes>},
    {"server_pulls_per_second", "Requests for values received in a second.",
     served_value<&LiveServer::has_pulls, &LiveServer::pulls>},
    {"server_received_bytes_per_second", "Bytes of messages received in a second.",
     served_value<&LiveServer::has_received, &LiveServer::received>},
    {"server_sent_bytes_per_second", "Bytes of messages sent in a second.",
     served_value<&LiveServer::has_sent, &LiveServer::sent>},
    {"server_busy_ratio", "Share of the time in which the server handles messages.",
     served_value<&LiveServer::has_busy, &LiveServer::busy>},
    {"server_answer_seconds", "Time of an update until the server has answered a trainer.",
     [](const LiveRank& rank) {
       return rank.serving().has_answer_ms() ? std::optional(rank.serving().answer_ms() / 1000)
                                             : std::nullopt;
     }},
    {"server_late_ratio", "Share of the time in which it waits for the last trainer of a step.",
     served_value<&LiveServer::has_waits, &LiveServer::waits>},
    {"server_blocks", "Dense blocks that the server holds.",
     [](const LiveRank& rank) { return std::optional<double>(rank.serving().blocks()); }},
    {"server_block_bytes", "Memory of their values and states.",
     [](const LiveRank& rank) { return std::optional<double>(rank.serving().block_bytes()); }},
    {"server_ahead_steps", "Steps of the fastest trainer beyond those of the slowest one.",
     [](const LiveRank& rank) {
       return rank.serving().apart() ? std::optional<double>(rank.serving().ahead()) : std::nullopt;
     }},
    {"server_queue", "Messages that wait to be handled.",
     [](const LiveRank& rank) { return std::optional<double>(rank.serving().queued()); }},
    {"server_slowest", "1 for the server that answers last.",
     [](const LiveRank& rank) {
       return rank.serving().has_answer_ms() ? std::optional(rank.slowest() ? 1.0 : 0.0)
                                             : std::nullopt;
     }},
};

constexpr Series<LiveTable> kTableSeries[] = {
    {"server_table_rows", "Rows of a sparse table on this server.",
     [](const LiveTable& table) { return std::optional<double>(table.rows()); }},
    {"server_table_bytes", "Memory of these rows.",
     [](const LiveTable& table) { return std::optional<double>(table.bytes()); }},
    {"server_table_pulled_rows_per_second", "Rows sent to trainers in a second.",
     metric_value<&LiveTable::has_pulled, &LiveTable::pulled>},
    {"server_table_pushed_rows_per_second", "Rows with gradients received in a second.",
     metric_value<&LiveTable::has_pushed, &LiveTable::pushed>},
};

constexpr Series<GpuUsage> kGpuSeries[] = {
    {"gpu_utilization_ratio", "Share of the time in which the GPU computes.",
     [](const GpuUsage& gpu) {
       return gpu.has_utilization() ? std::optional(0.01 * gpu.utilization()) : std::nullopt;
     }},
    {"gpu_memory_used_bytes", "GPU memory in use.",
     metric_value<&GpuUsage::has_memory_used, &GpuUsage::memory_used>},
    {"gpu_memory_bytes", "GPU memory.",
     metric_value<&GpuUsage::has_memory_total, &GpuUsage::memory_total>, false},
    {"gpu_clock_hertz", "Clock of the multiprocessors.",
     metric_value<&GpuUsage::has_clock_mhz, &GpuUsage::clock_mhz, 1'000'000>, false},
    {"gpu_power_watts", "Power.", metric_value<&GpuUsage::has_power_watts, &GpuUsage::power_watts>,
     false},
    {"gpu_temperature_celsius", "Temperature.",
     metric_value<&GpuUsage::has_celsius, &GpuUsage::celsius>, false},
    {"gpu_throttled", "1 if heat, power or the hardware lowers its clock.",
     [](const GpuUsage& gpu) {
       return gpu.has_throttled() ? std::optional(gpu.throttled() != 0 ? 1.0 : 0.0) : std::nullopt;
     },
     false},
};

std::string labels_of(const LiveRank& rank) {
  return ",role=\"" + std::string(rank.server() ? "server" : "trainer") + "\",rank=\"" +
         std::to_string(rank.rank()) + "\",node_rank=\"" + std::to_string(rank.node_rank()) + "\"";
}

void add_job(const LiveReport& report, Writer* writer) {
  writer->family("job_ranks", "Trainers of the job.");
  writer->add(report.world_size());
  writer->family("job_generation", "Starts of all ranks so far.");
  writer->add(report.generation());
  writer->family("job_running_seconds", "Time since the last start of all ranks.");
  writer->add(static_cast<double>(report.running_ms()) / 1000);
  writer->family("job_step", "Last finished step.");
  if (report.has_step()) writer->add(static_cast<double>(report.step()));
  writer->family("job_target_step", "Step at which training ends.");
  if (report.has_target()) writer->add(static_cast<double>(report.target()));
  writer->family("job_loss", "Last loss.");
  if (report.has_loss()) writer->add(report.loss());
  writer->family("job_left_seconds", "Estimated time until training ends.");
  if (report.has_seconds_left()) writer->add(report.seconds_left());
  if (!report.has_bottleneck()) return;
  writer->family("job_compute_ratio", "Share of the step that is computing.");
  writer->add(report.bottleneck().compute());
  writer->family("job_lost_ratio", "Share of the step that a named cause takes.");
  for (const wire::Cause& cause : report.bottleneck().causes()) {
    writer->add(cause.share(), std::string(",cause=\"") + name_of(cause.kind()) + "\"");
  }
}

void add_servers(const std::vector<const LiveRank*>& ranks, Writer* writer) {
  for (const Series<LiveRank>& series : kUseSeries) {
    writer->family(series.name, series.help);
    for (const LiveRank* rank : ranks) {
      const auto value = rank->has_servers() ? series.value(*rank) : std::nullopt;
      if (value) writer->add(*value, labels_of(*rank));
    }
  }
  for (const Series<LiveRank>& series : kServerSeries) {
    writer->family(series.name, series.help);
    for (const LiveRank* rank : ranks) {
      const auto value = rank->has_serving() ? series.value(*rank) : std::nullopt;
      if (value) writer->add(*value, labels_of(*rank));
    }
  }
  for (const Series<LiveTable>& series : kTableSeries) {
    writer->family(series.name, series.help);
    for (const LiveRank* rank : ranks) {
      for (int i = 0; i < std::min(rank->serving().tables_size(), kMostTables); ++i) {
        const LiveTable& table = rank->serving().tables(i);
        const auto value = series.value(table);
        if (!value) continue;
        writer->add(*value, labels_of(*rank) + ",table=\"" + escaped_label(table.name()) + "\"");
      }
    }
  }
}

}  // namespace

std::string metrics_text(const LiveReport& report, int node_rank) {
  Writer writer(report.job_id());
  if (node_rank == 0) add_job(report, &writer);
  std::vector<const LiveRank*> ranks;
  for (const LiveRank& rank : report.ranks()) {
    if (rank.node_rank() == node_rank) ranks.push_back(&rank);
  }
  for (const Series<LiveRank>& series : kRankSeries) {
    writer.family(series.name, series.help);
    for (const LiveRank* rank : ranks) {
      if (const auto value = series.value(*rank)) writer.add(*value, labels_of(*rank));
    }
  }
  add_servers(ranks, &writer);
  for (const Series<GpuUsage>& series : kGpuSeries) {
    writer.family(series.name, series.help);
    for (const LiveRank* rank : ranks) {
      const bool many = rank->gpus_size() > kFullGpus;
      if (many && !series.brief) continue;
      for (int i = 0; i < std::min(rank->gpus_size(), kBriefGpus); ++i) {
        const GpuUsage& gpu = rank->gpus(i);
        const auto value = series.value(gpu);
        if (!value) continue;
        writer.add(*value, labels_of(*rank) + ",gpu=\"" + std::to_string(gpu.id()) + "\"");
      }
    }
  }
  return writer.text();
}

std::shared_ptr<void> serve_metrics(const MetricsConfig& config, EventLoop& loop, AskLive ask) {
  const std::string token = config.token_file.empty() ? "" : read_secret(config.token_file);
  auto server = std::make_shared<HttpServer>(
      loop, config.address, config.port,
      [ask = std::move(ask), token](const HttpRequest& request, HttpServer::Respond respond) {
        if (!token.empty() && !has_token(request, token)) {
          return respond({.status = 401, .body = "the token is missing or wrong\n"});
        }
        const std::string path = request.path.substr(0, request.path.find('?'));
        if (path != "/metrics") return respond({.status = 404, .body = "look at /metrics\n"});
        if (request.method != "GET") return respond({.status = 405, .body = "use GET\n"});
        ask([respond = std::move(respond)](const LiveReport& report, int node_rank) {
          respond({.type = kType, .body = metrics_text(report, node_rank)});
        });
      });
  spdlog::info("metrics are at http://{}/metrics", endpoint(config.address, config.port));
  return server;
}

}  // namespace fleet

// The cache file of measured rates.
#include <filesystem>

#include "base/cache_file.h"
#include "base/error.h"
#include "base/file.h"
#include "base/home_folder.h"
#include "base/json.h"
#include "base/log.h"
#include "cost/rates.h"

namespace fleet {
namespace {

constexpr int kVersion = 4;  // files of other versions are measured again

Json link_json(const LinkRates& link) {
  Json transfers = Json::array();
  for (const TransferSample& one : link.all_reduce) {
    transfers.push_back({one.bytes, one.seconds, one.busy});
  }
  return {{"transport", link.transport},
          {"ranks", link.ranks},
          {"nodes", link.nodes},
          {"all_reduce", transfers}};
}

double number_at(const Json& list, size_t index) { return list.at(index).get<double>(); }

LinkRates link_of(const Json& json) {
  LinkRates link{.transport = json.at("transport").get<std::string>(),
                 .ranks = json.at("ranks").get<int>(),
                 .nodes = json.at("nodes").get<int>(),
                 .all_reduce = {}};
  for (const Json& one : json.at("all_reduce")) {
    link.all_reduce.push_back({number_at(one, 0), number_at(one, 1), number_at(one, 2)});
  }
  return link;
}

MachineRates rates_of(const Json& json) {
  MachineRates rates{.device = json.at("device").get<std::string>(),
                     .origin = json.at("origin").get<std::string>()};
  rates.peak = json.at("operations_per_second").get<std::map<std::string, double>>();
  rates.bytes_per_second = json.at("bytes_per_second").get<double>();
  rates.op_seconds = json.at("op_seconds").get<double>();
  rates.step_seconds = json.at("step_seconds").get<double>();
  rates.kernel_bytes = json.at("kernel_bytes").get<double>();
  rates.library_bytes = json.at("library_bytes").get<double>();
  rates.memory_bytes = json.at("memory_bytes").get<double>();
  rates.idle_factor = json.at("idle_factor").get<double>();
  for (const Json& one : json.at("operations")) {
    rates.samples.push_back({one.at(0).get<std::string>(), one.at(1).get<std::string>(),
                             number_at(one, 2), number_at(one, 3), number_at(one, 4)});
  }
  for (const Json& one : json.at("links")) rates.links.push_back(link_of(one));
  return rates;
}

}  // namespace

std::string rates_json(const MachineRates& rates) {
  Json samples = Json::array(), links = Json::array();
  for (const OpSample& one : rates.samples) {
    samples.push_back({one.key, one.layout, one.operations, one.bytes, one.seconds});
  }
  for (const LinkRates& link : rates.links) links.push_back(link_json(link));
  const Json json = {{"version", kVersion},
                     {"device", rates.device},
                     {"origin", rates.origin},
                     {"operations_per_second", rates.peak},
                     {"bytes_per_second", rates.bytes_per_second},
                     {"op_seconds", rates.op_seconds},
                     {"step_seconds", rates.step_seconds},
                     {"kernel_bytes", rates.kernel_bytes},
                     {"library_bytes", rates.library_bytes},
                     {"memory_bytes", rates.memory_bytes},
                     {"idle_factor", rates.idle_factor},
                     {"operations", samples},
                     {"links", links}};
  return json.dump();
}

std::optional<MachineRates> parse_rates(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    if (json.at("version") != kVersion) return std::nullopt;
    return rates_of(json);
  } catch (const JsonError&) {
    return std::nullopt;
  }
}

std::string rates_file(const std::string& name) {
  if (const auto own = get_env_path("FLEET_RATES_FILE")) return *own;
  return cache_file(name + ".json");
}

std::optional<MachineRates> read_rates(const std::string& path) {
  if (path.empty() || !std::filesystem::exists(path)) return std::nullopt;
  try {
    auto rates = parse_rates(read_file(path));
    if (!rates) spdlog::warn("{}: not the rates of a machine; they are measured again", path);
    return rates;
  } catch (const Error& error) {
    spdlog::warn("{}; the rates are measured again", error.what());
    return std::nullopt;
  }
}

void write_rates(const MachineRates& rates, const std::string& path) {
  if (path.empty()) return;
  try {
    make_directories(std::filesystem::path(path).parent_path());
    write_file_atomically(path, rates_json(rates));
  } catch (const Error& error) {
    spdlog::warn("cannot save the measured rates: {}", error.what());
  }
}

}  // namespace fleet

#include "train/checkpoint_state.h"

#include "base/crc32c.h"
#include "base/error.h"
#include "base/file_status.h"
#include "base/json.h"
#include "base/number_text.h"
#include "base/regular_file.h"

namespace fleet {
namespace {

constexpr char kChecksum[] = "crc32c";

// The checksum of the JSON text without spaces.
std::string checksum_of(const Json& state) { return format_printf("%08x", crc32c(state.dump())); }

Json to_json(const BestValue& best) {
  return {{"metric", best.metric}, {"value", best.value}, {"step", best.step}};
}

Json to_json(const EvaluationRecord& record) {
  return {{"kept", to_json(record.kept)},
          {"stopping", to_json(record.stopping)},
          {"without", record.without},
          {"observed_step", record.observed_step}};
}

BestValue best_from(const Json& json) {
  return {json.at("metric").get<std::string>(), json.at("value").get<double>(),
          json.at("step").get<int64_t>()};
}

EvaluationRecord record_from(const Json& state) {
  if (!state.contains("evaluations")) return {};
  const Json& json = state.at("evaluations");
  return {best_from(json.at("kept")), best_from(json.at("stopping")),
          json.at("without").get<int64_t>(), json.at("observed_step").get<int64_t>()};
}

Json to_json(const data::TokenizerIdentity& tokenizer) {
  Json json = {{"file", tokenizer.file}, {"hash", tokenizer.hash}};
  if (tokenizer.words) json["words"] = true;
  return json;
}

data::TokenizerIdentity tokenizer_from(const Json& state) {
  if (!state.contains("tokenizer")) return {};
  const Json& json = state.at("tokenizer");
  return {.file = json.at("file").get<std::string>(),
          .hash = json.at("hash").get<uint64_t>(),
          .words = json.value("words", false)};
}

// Each value in its own form: "settings": {"model.num_attention_heads": 12}.
Json to_json(const WeightSettings& settings) {
  Json json = Json::object();
  for (const auto& [key, value] : settings) json[key] = Json::parse(value);
  return json;
}

WeightSettings settings_from(const Json& state) {
  WeightSettings settings;
  if (!state.contains("settings")) return settings;
  for (const auto& [key, value] : state.at("settings").get<std::map<std::string, Json>>()) {
    settings[key] = value.dump();
  }
  return settings;
}

}  // namespace

std::string state_text(const TrainingPosition& position, const StateFacts& facts) {
  Json state = {{"version", kCheckpointVersion}, {"step", position.step},
                {"epoch", position.epoch},       {"batch", position.batch},
                {"seed", position.seed},         {"global_batch", position.global_batch},
                {"model", position.model},       {"task", position.task}};
  if (position.merged_steps > 1) state["merged_steps"] = position.merged_steps;
  if (facts.ranks > 0) state["ranks"] = facts.ranks;
  if (!facts.needs.empty()) state["needs"] = facts.needs;
  if (!position.schedule.empty()) state["schedule"] = position.schedule;
  if (position.evaluations.observed_step >= 0) state["evaluations"] = to_json(position.evaluations);
  if (!position.validation.empty()) state["validation"] = position.validation;
  if (!position.data.empty()) state["data"] = position.data;
  if (position.tokenizer.hash != 0) state["tokenizer"] = to_json(position.tokenizer);
  if (!position.settings.empty()) state["settings"] = to_json(position.settings);
  state[kChecksum] = checksum_of(state);
  return state.dump(2) + "\n";
}

TrainingPosition parse_state_text(const std::string& text, const std::string& path,
                                  StateFacts* facts) {
  const auto damaged = [&](const std::string& what) {
    return DamagedFile(
        what, path,
        "it is damaged or not a checkpoint; checkpoint.resume=auto uses the previous one");
  };
  try {
    Json state = Json::parse(text, [&](JsonEvent, int depth, const std::string&) {
      if (depth > 8) throw damaged("it is nested too deeply");
    });
    const int version = state.at("version").get<int>();
    facts->version = version;
    const std::string checksum = state.value(kChecksum, std::string());
    state.erase(kChecksum);
    const bool required = version != 1 || !checksum.empty();
    if (required && checksum != checksum_of(state)) {
      throw damaged("its content does not match its checksum");
    }
    if (version < 1 || version > kCheckpointVersion) {
      throw Error(ErrorCode::kUsage,
                  "is of version " + std::to_string(version) +
                      ", this fleetrun reads versions 1 to " + std::to_string(kCheckpointVersion),
                  path, "use the release that wrote it, or a newer one");
    }
    const TrainingPosition position = {.step = state.at("step").get<int64_t>(),
                                       .epoch = state.at("epoch").get<int64_t>(),
                                       .batch = state.at("batch").get<int64_t>(),
                                       .seed = state.at("seed").get<uint64_t>(),
                                       .global_batch = state.at("global_batch").get<int64_t>(),
                                       .merged_steps = state.value("merged_steps", int64_t{1}),
                                       .model = state.at("model").get<std::string>(),
                                       .task = state.value("task", TrainingPosition().task),
                                       .schedule = state.value("schedule", std::vector<double>()),
                                       .evaluations = record_from(state),
                                       .validation = state.value("validation", std::string()),
                                       .data = state.value("data", std::string()),
                                       .tokenizer = tokenizer_from(state),
                                       .settings = settings_from(state)};
    if (position.step < 0 || position.epoch < 0 || position.batch < 0) {
      throw damaged("a position below zero");
    }
    facts->ranks = state.value("ranks", 0);
    facts->needs = state.value("needs", std::string());
    return position;
  } catch (const JsonError&) {
    throw damaged("not the state of a checkpoint");
  }
}

TrainingPosition parse_state(const std::string& path, StateFacts* facts) {
  constexpr int64_t kLargest = 1 << 20;  // bytes
  if (path_exists(path)) {
    return parse_state_text(read_regular_file(path, kLargest), path, facts);
  }
  throw DamagedFile(
      "the file does not exist", path,
      "it is damaged or not a checkpoint; checkpoint.resume=auto uses the previous one");
}

std::string position_text(const TrainingPosition& position) { return state_text(position, {}); }

TrainingPosition position_from_text(const std::string& text, const std::string& where) {
  StateFacts facts;
  return parse_state_text(text, where, &facts);
}

TrainingPosition read_position(const std::string& folder) {
  StateFacts facts;
  return parse_state(folder + "/" + kStateFile, &facts);
}

std::optional<TrainingPosition> position_of_checkpoint(const std::string& folder) {
  try {
    return read_position(folder);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace fleet

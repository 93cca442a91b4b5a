#include "train/freezing.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <sstream>
#include <utility>

#include "base/counted.h"
#include "optim/frozen_norms.h"
#include "optim/optimizer.h"
#include "optim/parameter_groups.h"
#include "train/rank_state.h"

namespace fleet {
namespace {

constexpr char kKey[] = "train.unfreeze_at";

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw Error(ErrorCode::kUsage, "'" + text + "': " + why, kKey,
              "write an epoch (2), steps (\"500 steps\"), or a list with patterns: "
              "[\"1: layer4.*\", \"2: layer3.* layer2.*\"]");
}

int64_t number_of(const std::string& word, const std::string& text) {
  int64_t number = 0;
  const char* end = word.data() + word.size();
  const auto [behind, error] = std::from_chars(word.data(), end, number);
  if (error != std::errc() || behind != end || number < 1) {
    refuse(text, "'" + word + "' is not a whole number from 1 on");
  }
  return number;
}

}  // namespace

void expand_unfreeze_at(ConfigTree* tree) {
  const auto given = tree->peek(kKey);
  if (!given || given->empty() || given->find_first_not_of("0123456789") != given->npos) return;
  tree->set(kKey, *given, tree->origin(kKey));
}

FreezingPhases::FreezingPhases(const Job& job)
    : optimizer_(job.optimizer), fixes_statistics_(job.train.boolean("frozen_batch_norm")) {
  const std::vector<std::string> texts = job.train.texts("unfreeze_at");
  for (const std::string& text : texts) {
    const size_t colon = std::min(text.find(':'), text.size());
    std::istringstream head(text.substr(0, colon)), patterns(text.substr(colon));
    std::string number, unit, more;
    head >> number >> unit >> more;
    const bool steps = unit == "step" || unit == "steps";
    const bool epochs = unit.empty() || unit == "epoch" || unit == "epochs";
    if (!more.empty() || !(steps || epochs)) refuse(text, "the unit is neither epochs nor steps");
    if (&text != &texts[0] && steps != by_step_) refuse(text, "epochs and steps in one list");
    by_step_ = steps;
    Boundary boundary{.at = number_of(number, text)};
    if (colon < text.size()) patterns.get();
    for (std::string pattern; patterns >> pattern;) boundary.patterns.push_back(pattern);
    if (boundary.patterns.empty()) boundary.patterns = {"*"};
    if (!boundaries_.empty() && boundary.at <= boundaries_.back().at) {
      refuse(text, "it does not come after the entry before it");
    }
    boundaries_.push_back(std::move(boundary));
  }
  if (!texts.empty() && job.optimizer.texts("frozen").empty()) {
    throw Error(ErrorCode::kUsage, "no parameter is frozen", kKey,
                "set optimizer.frozen to patterns of parameters, or remove the key");
  }
}

void FreezingPhases::check(const PassContext& context,
                           const std::vector<std::string>& acting) const {
  if (count() == 1) return;
  const auto refuse = [](const std::string& what, const std::string& why, const std::string& key) {
    throw Error(ErrorCode::kUsage, "cannot be combined with " + what + ", which " + why, kKey,
                "remove it, or " + key);
  };
  if (optimizer_registry().get(optimizer_.text("name")).averages) {
    refuse(optimizer_.text("name"), "averages from the first update on",
           "choose another optimizer");
  }
  if (context.servers > 0) {
    refuse("parameter servers", "hold the parameters trained from the start", "the servers");
  }
  for (const auto& [name, why] : std::initializer_list<std::pair<std::string, std::string>>{
           {"pipeline", "cuts the model by its trained parameters"},
           {"reduce", "divides the trained parameters among ranks"},
           {"dgc", "chooses among the gradients that there are"}}) {
    if (std::ranges::find(acting, name) == acting.end()) continue;
    refuse(name, why, "strategy." + (name == "reduce" ? "build_strategy.reduce_strategy" : name));
  }
}

void FreezingPhases::check_placement(const Program& program) const {
  if (count() == 1 || !shards_parameters(program)) return;
  throw Error(ErrorCode::kUsage,
              "cannot be combined with sharding of parameters (sharding_configs.stage 3), where "
              "frozen parameters are whole on each rank, and trained ones are not",
              kKey, "remove it, or set sharding_configs.stage to 2");
}

int FreezingPhases::phase_at(const PhasePosition& at) const {
  const int64_t into_update = at.step % at.merged_steps;
  const int64_t batches = std::max<int64_t>(at.batches, 1);
  const int64_t begun =
      by_step_ ? at.step - into_update : (at.epoch * batches + at.batch - into_update) / batches;
  return static_cast<int>(std::ranges::count_if(
      boundaries_, [&](const Boundary& boundary) { return boundary.at <= begun; }));
}

bool FreezingPhases::is_frozen(const std::string& parameter) const {
  return std::ranges::any_of(optimizer_.texts("frozen"), [&](const std::string& pattern) {
    return matches_pattern(pattern, parameter);
  });
}

int FreezingPhases::trained_from(const std::string& parameter) const {
  for (size_t i = 0; i < boundaries_.size(); ++i) {
    const bool found = std::ranges::any_of(
        boundaries_[i].patterns,
        [&](const std::string& pattern) { return matches_pattern(pattern, parameter); });
    if (found) return static_cast<int>(i) + 1;
  }
  return 0;
}

void FreezingPhases::check_patterns(const Program& program) const {
  std::vector<std::string> names;
  for (const VarId id : program.parameters()) {
    if (is_frozen(program.var(id).name)) names.push_back(program.var(id).name);
  }
  for (const Boundary& boundary : boundaries_) {
    for (const std::string& pattern : boundary.patterns) {
      const bool found = std::ranges::any_of(
          names, [&](const std::string& name) { return matches_pattern(pattern, name); });
      if (found) continue;
      throw Error(ErrorCode::kUsage, "no frozen parameter matches '" + pattern + "'", kKey,
                  hint_for_pattern(pattern, names));
    }
  }
}

TrainedFrom FreezingPhases::apply(Program& program, int phase) const {
  check_parameter_patterns(program, optimizer_);
  check_patterns(program);
  freeze_parameters(program, optimizer_);
  TrainedFrom phases;
  for (const VarId id : program.parameters()) {
    Var& var = program.var(id);
    const int from = is_frozen(var.name) ? trained_from(var.name) : 0;
    if (from == 0) continue;
    phases[id] = from;
    var.trainable = from <= phase;
  }
  freeze_batch_norms(program, fixes_statistics_);
  return phases;
}

bool FreezingPhases::begins_later(const std::string& state) const {
  if (state.starts_with(kStepOfPhase)) return count() > 1;
  const std::string parameter = state.substr(0, state.rfind('.'));
  return is_frozen(parameter) && trained_from(parameter) > 0;
}

std::string FreezingPhases::when(int phase) const {
  const std::string at = std::to_string(boundaries_.at(static_cast<size_t>(phase) - 1).at);
  return (by_step_ ? "step " : "epoch ") + at;
}

int FreezingPhases::frozen_norms(const Program& program) const {
  const auto is_fixed = [&](VarId id) {
    return !program.var(id).trainable || is_frozen(program.var(id).name);
  };
  return static_cast<int>(std::ranges::count_if(program.ops(), [&](const Op& op) {
    return op.type() == "batch_norm" && !op.attributes.boolean("is_test") &&
           is_fixed(op.inputs[1]) && is_fixed(op.inputs[2]);
  }));
}

std::vector<std::string> FreezingPhases::lines_at_start(const Program& program) const {
  const std::vector<VarId> all = program.parameters();
  std::vector<int> from(static_cast<size_t>(count()));
  int frozen = 0;
  for (const VarId id : all) {
    const std::string& name = program.var(id).name;
    if (!is_frozen(name)) continue;
    ++frozen;
    ++from[static_cast<size_t>(trained_from(name))];
  }
  std::vector<std::string> lines;
  std::string text =
      std::to_string(frozen) + " of " + std::to_string(all.size()) + " parameters are frozen";
  for (int phase = 1; phase < count(); ++phase) {
    text += (phase == 1 ? ": " : ", ") + std::to_string(from[static_cast<size_t>(phase)]) +
            " until " + when(phase);
  }
  if (count() > 1 && from[0] > 0) text += ", " + std::to_string(from[0]) + " to the end";
  if (frozen > 0) lines.push_back(text);
  if (const int norms = frozen_norms(program); norms > 0) {
    const std::string stay = count() > 1 ? "stay until they are trained" : "stay";
    const std::string use = fixes_statistics_
                                ? "running statistics are used, and " + stay
                                : "statistics of batches are used, and the running ones change "
                                  "(train.frozen_batch_norm=false)";
    lines.push_back(counted(norms, "batch norm") + " with frozen parameters: " + use);
  }
  return lines;
}

std::string FreezingPhases::not_reached(int64_t epochs, int64_t steps) const {
  for (int phase = 1; phase < count(); ++phase) {
    const int64_t at = boundaries_[static_cast<size_t>(phase) - 1].at;
    if (by_step_ ? steps > 0 && at >= steps : at >= epochs) return when(phase);
  }
  return "";
}

std::string FreezingPhases::line_at(int phase, const Program& program) const {
  int fresh = 0, trained = 0;
  for (const VarId id : program.parameters()) {
    const Var& var = program.var(id);
    const int from = is_frozen(var.name) ? trained_from(var.name) : 0;
    fresh += from == phase ? 1 : 0;
    trained += var.trainable && from <= phase ? 1 : 0;
  }
  return "from " + when(phase) + " on, " + counted(fresh, "frozen parameter") +
         " are trained, too: " + std::to_string(trained) + " in all (train.unfreeze_at)";
}

}  // namespace fleet

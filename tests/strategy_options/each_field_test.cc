// No option is silent: each field of strategy.proto, set to another value than its default, changes
// the Program or the Plan, a setting of the job or of its device, or is refused by name, or a line
// of the log mentions it.
#include <gmock/gmock.h>
#include <spdlog/sinks/ostream_sink.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <sstream>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "exec/backend.h"
#include "strategy/names.h"
#include "strategy/reference.h"
#include "train/device_settings.h"
#include "train/session.h"

namespace fleet {
namespace {

using google::protobuf::FieldDescriptor;

// Jobs of several networks and update rules: an option may act on some of them only.
struct JobKind {
  const char *name, *model, *optimizer;
  int world, nodes;
};
constexpr JobKind kKinds[] = {{"resnet20", "resnet20", "momentum", 2, 1},
                              {"resnet20, adam", "resnet20", "adam", 2, 1},
                              {"mobilenet", "mobilenet_v1", "momentum", 2, 1},
                              {"two nodes", "resnet20", "momentum", 4, 2}};

// Captures the log while the object lives, without times.
class Log {
 public:
  Log() {
    auto logger = std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_));
    logger->set_pattern("%l %v");
    logger->set_level(spdlog::level::debug);
    spdlog::set_default_logger(logger);
  }
  ~Log() { spdlog::set_default_logger(before_); }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

struct Seen {
  std::string text;     // everything a user can see of the job, but its strategy's settings
  std::string refusal;  // the error, where it is one
  bool operator==(const Seen& other) const = default;
};

std::string settings_beside_strategy(const Job& job) {
  std::string text;
  for (const std::string& line : split(job.settings.print(), '\n')) {
    if (!line.starts_with("strategy.")) text += line + "\n";
  }
  return text;
}

std::string graphviz_file() { return testing::TempDir() + "each_field.dot"; }

// The host's decisions before each of several steps, while the loss falls and states keep their
// initial values.
std::string flags_of_steps(const Program& program, Strategy& strategy) {
  std::string text;
  for (int64_t i = 0; i < 12; ++i) {
    StepInfo info{.step = i};
    HostStep step{.info = info, .learning_rate = 0.1, .read = [&](VarId id) {
                    const Var& var = program.var(id);
                    const bool kept = var.kind == VarKind::kState;
                    const double value = kept ? var.init.a : 1.0 / static_cast<double>(1 + i);
                    return std::vector<float>(var.shape.elements(), static_cast<float>(value));
                  }};
    strategy.before_step(step);
    text += std::to_string(info.flags) + " ";
  }
  return text;
}

std::string program_and_plan(const Job& job, const JobKind& kind) {
  BuiltProgram built =
      build_program(job, {.columns = image_columns(image_shape(job.model_name, 0, 32, 32)),
                          .world = kind.world,
                          .nodes = kind.nodes});
  std::string text = print_text(built.program);
  text += flags_of_steps(built.program, *built.strategy);
  if (std::remove(graphviz_file().c_str()) == 0) text += "and a file\n";
  const PlanOptions options{.backend = "cpu", .initial_layouts = {}};
  return text + plan_program(std::move(built.program), built.keep, options).text();
}

Seen inspect(const JobKind& kind, const std::vector<std::string>& options) {
  Seen seen;
  const Log log;
  try {
    ConfigTree tree = ConfigTree::from_json(
        std::string(R"({"model": {"name": ")") + kind.model +
            R"(", "num_classes": 4}, "optimizer": {"name": ")" + kind.optimizer +
            R"("}, "data": {"source": "synthetic", "batch_size": 2, "train": {"samples": 64}}})",
        "job.json");
    apply_overrides(tree, options);
    const Job job = make_job(tree);
    const ConfigTree device = backend_options(job);
    seen.text = settings_beside_strategy(job) + join(without_effect(job, "cpu"), ", ") +
                *device.peek("cudnn_exhaustive_search") +
                *device.peek("conv_workspace_size_limit") + program_and_plan(job, kind);
  } catch (const Error& error) {
    seen.refusal = error.what();
  }
  seen.text += log.text();
  return seen;
}

// Values that mean something where a blind one would be refused, or would not apply to the networks
// above.
const std::map<std::string, std::string>& chosen_values() {
  static const std::map<std::string, std::string> values = {
      {"amp_configs.custom_white_list", "softmax_with_cross_entropy"},
      {"amp_configs.custom_black_list", "fc"},
      {"amp_configs.custom_black_varnames", "conv1.weight"},
      {"fuse_grad_size_in_MB", "0"},
      {"amp_configs.decr_ratio", "0.5"},
      {"amp_configs.dtype", "float16"},
      {"recompute_configs.checkpoints", "every block"},
      {"recompute_configs.checkpoint_shape", "2,64,8,8"},
      {"lars_configs.exclude_from_weight_decay", "bn"},
      {"lamb_configs.exclude_from_weight_decay", "bias"},
      {"dgc_configs.sparsity", "0.75"},
      {"mode", "PS"},
      {"pipeline_configs.schedule_mode", "F-then-B"},
      {"pipeline_configs.micro_batch_size", "3"},  // the default is not that of an unset field
      {"gradient_scale_configs.scale_strategy", "sum"},
      {"build_strategy.debug_graphviz_path", graphviz_file()},
      {"build_strategy.mkldnn_enabled_op_types", "relu"},
  };
  return values;
}

std::string other_value(const std::string& path) {
  const auto chosen = chosen_values().find(path);
  if (chosen != chosen_values().end()) return chosen->second;
  const FieldDescriptor& field = *find_field(path);
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return !field.is_repeated() && field.default_value_bool() ? "false" : "true";
    case FieldDescriptor::CPPTYPE_INT32: {
      const int value = field.is_repeated() ? 1 : field.default_value_int32();
      return std::to_string(in_range(field, value + 1) ? value + 1 : value - 1);
    }
    case FieldDescriptor::CPPTYPE_FLOAT:
      return std::to_string(field.is_repeated() ? 0.5 : field.default_value_float() * 2 + 1);
    default:
      return "something";
  }
}

// Other settings that must be on for a field to have an effect.
std::vector<std::string> needed_by(const std::string& path) {
  static const std::map<std::string, std::vector<std::string>> more = {
      {"recompute_configs.enable_offload", {"recompute_configs.checkpoints=every block"}},
      {"recompute_configs.checkpoint_shape",
       {"recompute_configs.checkpoints=every block", "recompute_configs.enable_offload=true"}},
      {"recompute_configs.enable_tuning", {"recompute_configs.checkpoints=every block"}},
      {"gradient_merge_configs.avg", {"gradient_merge_configs.k_steps=4"}},
      {"localsgd_configs.begin_step", {"localsgd_configs.k_steps=4"}},
      {"adaptive_localsgd_configs.begin_step", {"adaptive_localsgd_configs.init_k_steps=4"}},
      {"dgc_configs.rampup_step", {"dgc_configs.sparsity=0.5,0.75,0.875"}},
      {"dgc_configs.rampup_begin_step", {"dgc_configs.sparsity=0.5,0.75"}},
      {"hierarchical_allreduce_inter_nranks", {"use_hierarchical_allreduce=true"}},
      {"sync_nccl_allreduce", {"nccl_comm_num=2"}},
      {"amp_configs.use_pure_bf16", {"amp_configs.custom_black_list=conv2d"}},
  };
  std::vector<std::string> needed;
  const std::string outer = path.substr(0, path.find('.'));
  if (outer != path && outer.ends_with("_configs")) {
    const std::string feature = outer.substr(0, outer.size() - 8);
    const FieldDescriptor* field = find_field(feature);
    if (field && field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL &&
        !field->default_value_bool()) {
      needed.push_back("strategy." + feature + "=true");
    }
  }
  const auto found = more.find(path);
  if (found == more.end()) return needed;
  for (const std::string& option : found->second) needed.push_back("strategy." + option);
  return needed;
}

// The same, remembered.
const Seen& inspected_before(const JobKind& kind, const std::vector<std::string>& options) {
  static std::map<std::string, Seen> known;
  const std::string key = kind.name + join(options, " ");
  const auto found = known.find(key);
  return found != known.end() ? found->second
                              : known.emplace(key, inspect(kind, options)).first->second;
}

// Whether one of the jobs shows the option, in addition to those that it needs. A refusal names it.
bool is_shown(const std::string& path, const std::string& value,
              const std::vector<std::string>& needed) {
  std::vector<std::string> with = needed;
  with.push_back("strategy." + path + "=" + value);
  const std::string name = path.substr(path.rfind('.') + 1);
  return std::any_of(std::begin(kKinds), std::end(kKinds), [&](const JobKind& kind) {
    const Seen seen = inspect(kind, with);
    const bool named = seen.refusal.empty() || seen.refusal.find(name) != std::string::npos;
    return named && !(seen == inspected_before(kind, needed));
  });
}

// A pass that runs unless it is switched off: true is what an unset field means.
bool is_on_where_unset(const std::string& path) {
  for (const OptionRow& row : option_rows()) {
    if (row.path == path) return row.unset_is_on;
  }
  return false;
}

// Inspecting a job twice gives equal results, so a difference below comes from the option.
TEST(EachField, Nothing_ChangesNothing) {
  for (const JobKind& kind : kKinds) {
    const Seen seen = inspect(kind, {});
    EXPECT_EQ(seen.refusal, "") << kind.name;
    EXPECT_TRUE(seen == inspect(kind, {})) << kind.name;
    EXPECT_TRUE(seen == inspect(kind, {"strategy.amp=false"})) << kind.name;
  }
}

TEST(EachField, AnotherValueThanItsDefault_IsSeen) {
  std::string why;
  const bool has_low_types = !low_precision_types("cpu", &why).empty();
  if (!has_low_types) std::printf("[   NOTE   ] without amp_configs: %s\n", why.c_str());
  for (const std::string& path : field_paths()) {
    if (!has_low_types && path.starts_with("amp_configs.")) continue;  // amp has no effect here
    const std::string value = is_on_where_unset(path) ? "false" : other_value(path);
    EXPECT_TRUE(is_shown(path, value, needed_by(path)))
        << path << "=" << value << " changes nothing, in silence";
  }
}

// recompute takes its message whole, but not what Paddle 2.6 added to it.
TEST(EachField, LaterFieldOfAMessageThatIsTaken_IsRefused) {
  const Seen seen = inspect(
      kKinds[0], {"strategy.recompute=true", "strategy.recompute_configs.checkpoints=every block",
                  "strategy.recompute_configs.enable_tuning=true"});
  EXPECT_THAT(seen.refusal, testing::HasSubstr("recompute_configs.enable_tuning"));
}

// A feature that is off, and a configuration for it.
TEST(EachField, ConfigurationOfAFeatureThatIsOff_IsSeenToo) {
  for (const std::string& path : field_paths()) {
    if (needed_by(path).empty()) continue;
    EXPECT_TRUE(is_shown(path, other_value(path), {}))
        << path << "=" << other_value(path) << " changes nothing, in silence";
  }
}

}  // namespace
}  // namespace fleet

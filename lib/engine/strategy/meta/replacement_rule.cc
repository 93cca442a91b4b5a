#include "strategy/meta/replacement_rule.h"

#include <charconv>

#include "base/error.h"
#include "optim/optimizer.h"

namespace fleet {
namespace {

std::string text_of_double(double value) {
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

}  // namespace

std::string text_of_float(float value) {
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

Settings replacement_rule(const Settings& inner, const std::string& rule,
                          const std::vector<std::pair<std::string, std::string>>& values) {
  const std::string origin = "strategy " + rule;
  ConfigTree tree;
  tree.set("name", rule, origin);
  tree.set("clip", inner.text("clip"), origin);
  for (const char* key : {"clip_norm", "clip_value", "clip_factor"}) {
    if (inner.given(key)) tree.set(key, text_of_double(inner.number(key)), origin);
  }
  if (inner.given("clip_exclude")) tree.set("clip_exclude", inner.json("clip_exclude"), origin);
  if (const double decay = inner.number("weight_decay"); decay > 0) {
    const bool exclude_1d = inner.boolean("weight_decay_exclude_1d");
    if (exclude_1d || !inner.texts("exclude_from_weight_decay").empty()) {
      throw Error(
          ErrorCode::kUsage, "cannot be combined with " + rule,
          exclude_1d ? "optimizer weight_decay_exclude_1d" : "optimizer exclude_from_weight_decay",
          "remove it, and name the parameters in the strategy's " + rule + "_configs");
    }
    tree.set("coupled_weight_decay", text_of_double(decay), origin);
  }
  if (!inner.texts("groups").empty()) {
    throw Error(ErrorCode::kUsage, "cannot be combined with the strategy " + rule,
                "optimizer.groups",
                "remove it, or set optimizer.name to " + rule + " instead of the strategy");
  }
  for (const auto& [key, value] : values) tree.set(key, value, origin);
  return tree.validate(optimizer_schema(rule));
}

}  // namespace fleet

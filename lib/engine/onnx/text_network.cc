#include <algorithm>

#include "base/error.h"
#include "models/model.h"
#include "onnx/network.h"

namespace fleet {
namespace {

constexpr char kMask[] = "attention_mask";

std::string text_of(int64_t size) { return std::to_string(size); }

// From the mask of real tokens: -1 for padding, and places that count real tokens.
void compute_feeds(OnnxGraph& graph) {
  const std::string one = graph.integer(1);
  graph.node("Sub", {kMask, one}, {}, "document_ids");
  const std::string count = graph.node("CumSum", {kMask, graph.integer(1)});
  graph.node("Max", {graph.node("Sub", {count, one}), graph.integer(0)}, {}, "position_ids");
}

class TextNetwork {
 public:
  TextNetwork(const Job& job, const std::set<std::string>& outputs, int64_t batch, int64_t length,
              int64_t masked)
      : wanted_(outputs) {
    const SectionId section =
        built_.program.add_section("evaluate", {.training = false, .evaluation = true});
    NamedVars feeds = {{"sample_key", kNoVar}};
    for (const std::string& name : ports_of(job.model_name, job.model).inputs_for(outputs)) {
      const int64_t size = name == "masked_positions" ? masked : length;
      feeds[name] = built_.program.feed(name, DType::kInt64, {batch, size});
      add_input(name);
    }
    Network network(built_.program, section, false, kNoVar);
    network.set_wanted_outputs(outputs);
    const NamedVars made = model_registry().get(job.model_name).build(network, feeds, job.model);
    for (const std::string& name : outputs) add_output(name, made, &network);
    if (find_var(made, "head") == kNoVar || outputs.contains("masked_hidden")) {
      add_result("hidden", made.at("hidden"), "length");  // for embeddings
    }
    built_.begin = compute_feeds;
  }

  OnnxNetwork finish() { return std::move(built_); }

 private:
  void add_input(const std::string& name) {
    if (name == "position_ids") return;
    const bool documents = name == "document_ids";
    built_.inputs.push_back({documents ? kMask : name,
                             kNoVar,
                             DType::kInt64,
                             {"batch", name == "masked_positions" ? "masked" : "length"}});
  }

  // middle: the name of the second of three dimensions.
  void add_result(const std::string& name, VarId var, const std::string& middle) {
    const auto same = std::ranges::find(built_.outputs, name, &OnnxPort::name);
    if (same != built_.outputs.end()) return;
    const Shape& shape = built_.program.var(var).shape;
    std::vector<std::string> dims = {"batch"};
    if (shape.rank() == 3) dims.push_back(middle);
    dims.push_back(text_of(shape[shape.rank() - 1]));
    built_.outputs.push_back({name, var, DType::kFloat32, dims});
  }

  void add_output(const std::string& name, const NamedVars& made, Network* network) {
    const bool masks = wanted_.contains("masked_hidden");
    if (name == "head_bias" || (name == "head" && masks)) return;
    if (name == "masked_hidden") {
      const VarId logits = network->apply(
          "fc", {made.at(name), made.at("head"), made.at("head_bias")}, {{"axis", int64_t{2}}});
      return add_result("masked_logits", logits, "masked");
    }
    if (name == "head") {
      const VarId logits =
          network->apply("fc", {made.at("hidden"), made.at(name)}, {{"axis", int64_t{2}}});
      return add_result("logits", logits, "length");
    }
    if (name == "hidden" && find_var(made, "head") != kNoVar) return;
    add_result(name, made.at(name), "length");
  }

  const std::set<std::string>& wanted_;
  OnnxNetwork built_;
};

}  // namespace

OnnxNetwork text_network(const Job& job, const std::set<std::string>& outputs, int64_t batch,
                         int64_t length, int64_t masked) {
  return TextNetwork(job, outputs, batch, length, masked).finish();
}

}  // namespace fleet

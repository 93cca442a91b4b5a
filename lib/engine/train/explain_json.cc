// The explanation of a job for programs.
#include <sstream>

#include "base/json.h"
#include "train/explain.h"

namespace fleet {
namespace {

Json memory_json(const ExplainedMemory& memory) {
  return {{"parameters", memory.planned.parameters},
          {"optimizer_state", memory.planned.states},
          {"gradients", memory.planned.gradients},
          {"activations", memory.planned.activations},
          {"workspace", memory.planned.workspace},
          {"feeds", memory.planned.feeds},
          {"communication", memory.communication},
          {"input", memory.input},
          {"kernels", memory.kernels},
          {"start", memory.start},
          {"process", memory.process},
          {"total", memory.total()},
          {"host", memory.planned.host}};
}

Json band_json(const std::optional<StepBand>& band) {
  if (!band) return nullptr;
  return {{"low", band->low}, {"high", band->high}, {"source", band_source()}};
}

Json time_json(const JobCost& cost) {
  if (!cost.time) return nullptr;
  const StepTime& time = *cost.time;
  return {{"seconds", time.total},
          {"band", band_json(time.band)},
          {"compute", time.compute},
          {"communication", time.communication},
          {"hidden", time.hidden},
          {"waiting", time.waiting},
          {"stages", time.stages},
          {"host", time.host},
          {"by_operation", time.by_type},
          {"images_per_second", cost.images_per_second},
          {"tokens_per_second",
           cost.length > 0 ? Json(cost.images_per_second * static_cast<double>(cost.length))
                           : Json(nullptr)},
          {"bound_by", time.compute_bound ? "arithmetic" : "memory"}};
}

Json rates_json(const Explanation& job) {
  if (!job.rates) return nullptr;
  return {{"device", job.rates->device},
          {"origin", job.rates->origin},
          {"estimate", job.rates->estimate},
          {"operations_per_second", job.rates->peak},
          {"bytes_per_second", job.rates->bytes_per_second},
          {"link_bytes_per_second", job.topology.link_bytes}};
}

Json what_if_json(const WhatIf& variant) {
  Json json = {{"option", variant.option}, {"set", variant.overrides}};
  if (!variant.obstacle.empty()) {
    json["obstacle"] = variant.obstacle;
    return json;
  }
  json["memory"] = memory_json(variant.cost.memory);
  json["step"] = time_json(variant.cost);
  return json;
}

}  // namespace

std::string explanation_json(const Explanation& job) {
  Json json = {{"model", job.model},           {"device", job.backend},
               {"ranks", job.ranks},           {"nodes", job.nodes},
               {"threads", job.threads},       {"batch_size", job.batch},
               {"parameters", job.parameters}, {"trained_parameters", job.trainable}};
  json["passes"] = Json::array();
  for (const PassStep& step : job.steps) {
    json["passes"].push_back({{"name", step.name}, {"before", step.before}, {"after", step.after}});
  }
  json["operations"] = job.operations;
  json["training_operations"] = job.training_operations;
  json["memory"] = memory_json(job.cost.memory);
  json["fitting_batch"] = job.fitting_batch ? Json(*job.fitting_batch) : Json(nullptr);
  json["available_memory"] = job.available_bytes > 0 ? Json(job.available_bytes) : Json(nullptr);
  json["groups"] = Json::array();
  for (const ExplainedGroup& group : job.groups) {
    json["groups"].push_back({{"name", group.name},
                              {"transport", group.transport},
                              {"operations", group.types},
                              {"bytes", group.bytes}});
  }
  if (job.cost.time) {
    json["sent_bytes"] = {{"within_node", job.cost.time->within},
                          {"between_nodes", job.cost.time->between}};
  }
  json["step"] = time_json(job.cost);
  json["rates"] = rates_json(job);
  json["what_if"] = Json::array();
  for (const WhatIf& variant : job.what_if) json["what_if"].push_back(what_if_json(variant));
  for (const LengthCost& one : job.lengths) {
    json["lengths"].push_back({{"length", one.length},
                               {"activations", one.planned.activations},
                               {"memory", one.planned.total()},
                               {"seconds", one.time ? Json(one.time->total) : Json(nullptr)}});
  }
  if (!job.choices.empty()) {
    json["choices"] = Json::array();
    for (const StrategyChoice& choice : job.choices) {
      json["choices"].push_back({{"set", choice.override}, {"reason", choice.reason}});
    }
  }
  json["text"] = Json::array();
  std::istringstream lines(explanation_text(job));
  for (std::string line; std::getline(lines, line);) json["text"].push_back(line);
  return json.dump_lossy();
}

}  // namespace fleet

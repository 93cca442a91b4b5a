#include "train/served_job.h"

#include <span>

#include "base/error.h"
#include "base/json.h"
#include "graph/op.h"
#include "optim/optimizer.h"
#include "strategy/server_mode.h"
#include "train/predict.h"

namespace fleet {

void check_served_job(const Job& job) {
  const auto refuse = [](ErrorCode code, const std::string& what, const std::string& key,
                         const std::string& next) { throw Error(code, what, key, next); };
  if (predicts(job)) {
    refuse(ErrorCode::kUsage, "a prediction needs no parameter servers", "predict.input",
           "start it without --server_num and --servers");
  }
  if (job.train.boolean("evaluate_only")) {
    refuse(ErrorCode::kUsage, "an evaluation needs no parameter servers", "train.evaluate_only",
           "start it without --server_num and --servers");
  }
  if (job.train.text("weights_dtype") != "float32") {
    refuse(ErrorCode::kUnsupported, "parameter servers hold parameters in float32",
           "train.weights_dtype", "set it to float32, or train without servers");
  }
  if (optimizer_registry().get(job.optimizer.text("name")).averages) {
    refuse(ErrorCode::kUnsupported, "parameter servers do not keep the average of this optimizer",
           "optimizer.name", "choose another optimizer, or train without servers");
  }
  const ServerSettings settings = server_settings(strategy_from(job.strategy));
  if (settings.mode == ServerMode::kGeo && job.train.number("ema.decay") != 0) {
    refuse(ErrorCode::kUnsupported,
           "the mode geo does not average weights: each trainer has others", "train.ema.decay",
           "set it to 0, or strategy.a_sync_configs.k_steps to 0");
  }
}

bool trainers_run_apart(const Job& job, int servers) {
  return servers > 0 && server_settings(strategy_from(job.strategy)).apart();
}

std::vector<TableRequest> requests_of(const Job& job) {
  std::vector<TableRequest> requests;
  for (const JobTable& table : job.tables) requests.push_back({table.name, table.dim});
  return requests;
}

std::string columns_text(const std::vector<Column>& columns) {
  Json all = Json::array();
  for (const Column& column : columns) {
    Json shape = Json::array();
    for (int d = 0; d < column.shape.rank(); ++d) shape.push_back(column.shape[d]);
    all.push_back({{"name", column.name},
                   {"dtype", name_of(column.dtype)},
                   {"shape", shape},
                   {"ragged", column.ragged},
                   {"by_length", column.by_length}});
  }
  return all.dump();
}

std::vector<Column> columns_from_text(const std::string& text) {
  std::vector<Column> columns;
  try {
    for (const auto& one : Json::parse(text)) {
      std::vector<int64_t> shape;
      for (const auto& size : one.at("shape")) shape.push_back(size.get<int64_t>());
      columns.push_back({.name = one.at("name").get<std::string>(),
                         .dtype = to_dtype(one.at("dtype").get<std::string>()),
                         .shape = Shape(std::span<const int64_t>(shape)),
                         .ragged = one.at("ragged").get<bool>(),
                         .by_length = one.at("by_length").get<bool>()});
    }
  } catch (const JsonError& error) {
    throw Error(ErrorCode::kInternal, error.what(), "columns of the data");
  }
  return columns;
}

}  // namespace fleet

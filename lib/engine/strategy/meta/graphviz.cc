#include "base/file.h"
#include "base/regular_file.h"
#include "strategy/meta_optimizer.h"

namespace fleet {
namespace {

class Graphviz : public MetaOptimizer {
 public:
  explicit Graphviz(std::string path) : path_(std::move(path)) {}
  void finish(const BuildContext& build) override {
    check_replaceable(path_);
    write_file_atomically(path_, print_dot(build.program));
  }

 private:
  const std::string path_;
};

}  // namespace

FLEET_META_OPTIMIZER(debug_graphviz_path) {
  def.help = "the Program is written to this file, for Graphviz";
  def.position = 900;
  def.fields = {"build_strategy.debug_graphviz_path"};
  def.requested = [](const StrategyProto& proto) {
    return !proto.build_strategy().debug_graphviz_path().empty();
  };
  def.create = [](const StrategyProto& proto, const PassContext&) {
    return std::make_unique<Graphviz>(proto.build_strategy().debug_graphviz_path());
  };
  def.when = "to inspect the network as rewritten by a strategy";
  def.cost = "every rank writes the file at the start, to the same path";
}

}  // namespace fleet

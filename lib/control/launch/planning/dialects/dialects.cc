#include <algorithm>

#include "base/text.h"
#include "launch/planning/dialects/dialect.h"
#include "launch/planning/refuse.h"

namespace fleet {
namespace {

// Several services of one node.
class Services final : public RankService {
 public:
  void add(std::unique_ptr<RankService> service) { all_.push_back(std::move(service)); }
  bool empty() const { return all_.empty(); }
  void on_rank_bytes(int local_rank, std::string_view bytes) override {
    for (const auto& service : all_) service->on_rank_bytes(local_rank, bytes);
  }

 private:
  std::vector<std::unique_ptr<RankService>> all_;
};

Registry<Dialect>& registry() {
  static Registry<Dialect> dialects("dialect");
  return dialects;
}

}  // namespace

bool define_dialect(const std::string& name, void (*define)(Dialect&)) {
  Dialect dialect;
  dialect.name = name;
  return registry().define(name, define, std::move(dialect));
}

const Dialect& dialect_named(const std::string& name) { return registry().get(name); }

const std::vector<const Dialect*>& all_dialects() {
  static const std::vector<const Dialect*> all = [] {
    std::vector<const Dialect*> sorted;
    for (const std::string& name : registry().names()) sorted.push_back(registry().find(name));
    std::stable_sort(sorted.begin(), sorted.end(), [](const Dialect* one, const Dialect* other) {
      return one->order < other->order;
    });
    return sorted;
  }();
  return all;
}

std::string dialect_names() {
  std::vector<std::string> names;
  for (const Dialect* dialect : all_dialects()) names.push_back(dialect->name);
  return join(names, ", ");
}

std::vector<const Dialect*> dialects_named(const std::vector<std::string>& names) {
  std::vector<std::string> known;
  std::vector<const Dialect*> chosen;
  for (const Dialect* dialect : all_dialects()) {
    known.push_back(dialect->name);
    if (std::find(names.begin(), names.end(), dialect->name) != names.end()) {
      chosen.push_back(dialect);
    }
  }
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      refuse("unknown dialect '" + name + "'", "--dialect", suggestion(name, known));
    }
  }
  return chosen;
}

bool any_dialect(const std::vector<std::string>& names, bool Dialect::*capability) {
  const auto chosen = dialects_named(names);
  return std::any_of(chosen.begin(), chosen.end(),
                     [&](const Dialect* dialect) { return dialect->*capability; });
}

std::vector<std::string> read_dialects(const Settings& settings, bool roles) {
  const bool given = settings.given("dialect");
  const std::vector<std::string> wanted =
      given ? settings.texts("dialect") : RankContext().dialects;
  std::vector<std::string> names;
  for (const Dialect* dialect : dialects_named(wanted)) {
    if (!roles || dialect->role) {
      names.push_back(dialect->name);
    } else if (given) {
      refuse(dialect->name + " does not support parameter servers", "--dialect",
             "leave it out: the processes get Paddle's environment");
    }
  }
  if (names.empty()) {
    refuse("no dialect is given", "--dialect", "leave it out for paddle,torch");
  }
  return names;
}

void check_dialects_of_worker(const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), "paddle") != names.end()) return;
  refuse("fleet-worker, which runs job files, reads Paddle's variables", "--dialect",
         "add paddle to the list");
}

std::unique_ptr<RankService> start_dialect_services(const std::vector<std::string>& names,
                                                    const ServiceContext& context) {
  auto services = std::make_unique<Services>();
  for (const Dialect* dialect : dialects_named(names)) {
    if (dialect->serve) services->add(dialect->serve(context));
  }
  if (services->empty()) return nullptr;
  return services;
}

}  // namespace fleet

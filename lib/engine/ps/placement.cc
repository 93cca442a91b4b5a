#include "ps/placement.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"

namespace fleet::ps {
namespace {

// Bounds of the pieces of a parameter. Each has at least min_elements: bounds are rounded down, and
// pieces have a larger size on average. Pieces of the largest size end at most `alignment` later.
std::vector<int64_t> bounds_of(const PlacedParameter& parameter, int servers,
                               const PlacementOptions& options) {
  const int64_t n = parameter.elements;
  const int64_t most = parameter.whole ? 1 : n / options.min_elements;
  if (parameter.whole && n > 2 * options.max_elements) {
    throw Error(ErrorCode::kUnsupported,
                "it has " + std::to_string(n) + " elements, and its update needs all of them on " +
                    "one server, which holds at most " + std::to_string(2 * options.max_elements) +
                    " of a parameter",
                parameter.name, "use a rule that updates elements separately: adam, momentum, sgd");
  }
  const int64_t least = parameter.whole ? 1 : (n + options.max_elements - 1) / options.max_elements;
  const int64_t pieces = std::max(std::clamp<int64_t>(most, 1, servers), least);
  std::vector<int64_t> bounds;
  for (int64_t i = 0; i < pieces; ++i) {
    const int64_t exact = n / pieces * i + n % pieces * i / pieces;
    bounds.push_back(exact / options.alignment * options.alignment);
  }
  bounds.push_back(n);
  return bounds;
}

// Assigns the items to servers, the largest first.
class Balance {
 public:
  explicit Balance(int servers) : load_(static_cast<size_t>(servers)) {}

  template <typename Bytes>
  std::vector<int> assign(size_t count, const Bytes& bytes) {
    std::vector<size_t> order(count);
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, std::greater(), bytes);
    std::vector<int> servers(count);
    for (const size_t item : order) {
      const auto least = std::ranges::min_element(load_);
      servers[item] = static_cast<int>(least - load_.begin());
      *least += bytes(item);
    }
    return servers;
  }

 private:
  std::vector<size_t> load_;  // bytes, by server
};

// Joins neighbours on one server.
std::vector<Block> joined(const std::vector<Block>& blocks, int64_t most) {
  std::vector<Block> result;
  for (const Block& block : blocks) {
    const bool follows = !result.empty() && result.back().parameter == block.parameter &&
                         result.back().server == block.server &&
                         result.back().elements() + block.elements() <= most;
    if (follows) {
      result.back().end = block.end;
    } else {
      result.push_back(block);
    }
  }
  return result;
}

}  // namespace

std::vector<int> Placement::blocks_of(int server) const {
  std::vector<int> own;
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].server == server) own.push_back(static_cast<int>(i));
  }
  return own;
}

Placement place(std::span<const PlacedParameter> parameters, std::span<const PlacedVar> kept,
                int servers, const PlacementOptions& options) {
  FLEET_CHECK(servers >= 1 && options.alignment >= 1 &&
                  options.min_elements % options.alignment == 0 && options.min_elements >= 1,
              "a placement with these options");
  Placement placement{.servers = servers, .blocks = {}, .kept = {}};
  for (size_t p = 0; p < parameters.size(); ++p) {
    const std::vector<int64_t> bounds = bounds_of(parameters[p], servers, options);
    for (size_t i = 0; i + 1 < bounds.size(); ++i) {
      placement.blocks.push_back(
          {.parameter = static_cast<int>(p), .begin = bounds[i], .end = bounds[i + 1]});
    }
  }
  Balance balance(servers);
  const std::vector<int> of_blocks = balance.assign(placement.blocks.size(), [&](size_t i) {
    const Block& block = placement.blocks[i];
    return static_cast<size_t>(block.elements()) * parameters[block.parameter].element_bytes;
  });
  for (size_t i = 0; i < of_blocks.size(); ++i) placement.blocks[i].server = of_blocks[i];
  placement.blocks = joined(placement.blocks, options.max_elements);
  placement.kept = balance.assign(kept.size(), [&](size_t i) { return kept[i].bytes; });
  return placement;
}

uint64_t hash_of(const Placement& placement, std::span<const PlacedParameter> parameters,
                 std::span<const PlacedVar> kept) {
  std::string text = std::to_string(placement.servers);
  const auto add = [&](int64_t number) { text += " " + std::to_string(number); };
  for (const PlacedParameter& parameter : parameters) {
    text += "\n" + parameter.name;
    add(parameter.elements);
    add(static_cast<int64_t>(parameter.element_bytes));
  }
  for (const Block& block : placement.blocks) {
    text += "\n";
    for (const int64_t number : {int64_t{block.parameter}, block.begin, block.end}) add(number);
    add(block.server);
  }
  for (size_t i = 0; i < kept.size(); ++i) {
    text += "\n" + kept[i].name;
    add(static_cast<int64_t>(kept[i].bytes));
    add(placement.kept[i]);
  }
  return hash_text(text);
}

std::string text_of(const Placement& placement, std::span<const PlacedParameter> parameters,
                    std::span<const PlacedVar> kept, bool updates) {
  const auto number_of = [](size_t count, const std::string& noun) {
    return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
  };
  std::string text;
  for (int server = 0; server < placement.servers; ++server) {
    std::set<int> touched;
    size_t values = 0, all = 0, others = 0;
    const std::vector<int> own = placement.blocks_of(server);
    for (const int i : own) {
      const Block& block = placement.blocks[i];
      touched.insert(block.parameter);
      values += static_cast<size_t>(block.elements()) * sizeof(float);
      all += static_cast<size_t>(block.elements()) * parameters[block.parameter].element_bytes;
    }
    for (size_t i = 0; i < kept.size(); ++i)
      others += placement.kept[i] == server ? kept[i].bytes : 0;
    text += "server " + std::to_string(server) + " holds " + number_of(own.size(), "block") +
            " of " + number_of(touched.size(), "parameter") + ": " + mebibytes(values) + ", " +
            mebibytes(all + others) + " with " +
            (updates ? "states\n" : "the states that trainers begin with\n");
  }
  return text;
}

}  // namespace fleet::ps

// Initial values of rows: a function of (seed, table, id), so that they are the same for every
// number of servers and every order of arrival.
#pragma once

#include <cstdint>
#include <string>

namespace fleet::ps {

struct InitializerSettings {
  enum class Kind { kUniform, kNormal, kTruncatedNormal, kConstant };
  Kind kind = Kind::kUniform;
  double low = -1e-4, high = 1e-4;  // uniform: [low, high)
  double mean = 0, deviation = 1;   // normal; truncated: draws within 2 deviations
  double value = 0;                 // constant
};

// Any thread.
class RowInitializer {
 public:
  RowInitializer(const InitializerSettings& settings, uint64_t seed, const std::string& table);
  void fill(uint64_t id, float* values, int dim) const;
  // A draw in [0, 1) for the id, independent of its values.
  double draw(uint64_t id) const;

 private:
  const InitializerSettings settings_;
  uint64_t key_;
};

}  // namespace fleet::ps

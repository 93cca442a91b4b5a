// Permutations that need no memory, for orders of more samples than can be stored.
#pragma once

#include <cstdint>

namespace fleet::data {

// A pseudo-random permutation of 0 .. size-1: a Feistel network of four rounds over numbers of an
// even count of bits, repeated until the result is below `size` (Black and Rogaway, "Ciphers with
// Arbitrary Finite Domains", 2002). Thread-safe.
class Permutation {
 public:
  Permutation(int64_t size, uint64_t key);
  // 0 <= position < size.
  int64_t operator()(int64_t position) const;

 private:
  uint64_t size_, key_, mask_;
  int half_;  // bits of a half
};

}  // namespace fleet::data

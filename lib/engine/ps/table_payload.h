// Payloads of messages about rows of tables (MessageHeader::table > 0).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/json.h"
#include "ps/dense_payload.h"

namespace fleet::ps {

// kPull of `count` rows. Their ids follow, uint64 each, and for training how often each occurs in
// the trainer's batch, uint32 each. header.version: the step.
struct RowsPullHead {
  uint64_t cuts = 0;     // cuts of the tables that come before: see TableCommand
  uint32_t lookup = 0;   // 1: for an evaluation, creates no rows
  uint32_t changes = 0;  // 1: geo, see below
};

// A kPull with `changes` names no rows. Its kValues has those that any trainer has pushed since
// this trainer's last such pull: behind the head their ids, uint64 each, then the rows.

// kValues. The rows follow in the order of the ids, float32 [count, dim].
struct RowsHead {
  // Lookups: ids without a row, as MissingRows counts them.
  uint64_t initial = 0, not_admitted = 0;
};

// kPush of gradients of `count` rows, none twice, in front of the kPush of the step's dense
// gradients, whose sequence it has. Ids follow, uint64 each; their occurrences and clicks in the
// batch, float32 each; gradients, float32 [count, dim]. In geo, differences of values that are
// added to the rows.

// kCommand of trainer 0, and the kResult of each: JSON.
//   {"command": "load", "folder": F}      fills the tables from a snapshot
//   {"command": "cut", "cuts": N}         fixes the content of the N-th snapshot; {"version": V}
//   {"command": "write", "folder": F}     writes its shards of the cut, while training continues;
//                                         {"parts": [...]} for finish_snapshot(). With "since",
//                                         versions by table, only rows changed after them
//   {"command": "drop"}                   ends the cut without writing it
//   {"command": "shrink", "cuts": N, "step": S, "age": A}
//                                         ages all rows by one, and removes those of age A and
//                                         more; counts as a cut, and is not sent during one
//   {"error": {...}}                      the command failed; training can continue
Message json_message(MessageType type, const Json& json);
Json json_of(const Message& message);  // kInternal for other text
Json json_of(const Error& error);
// Throws the error of a result, if it has one.
void throw_if_failed(const Json& result);

// The part of a payload from byte `begin` on, as `count` values. kInternal if it is shorter.
template <typename T>
std::span<const T> values_at(std::span<const std::byte> payload, size_t begin, size_t count) {
  FLEET_CHECK(begin + count * sizeof(T) <= payload.size(), "a message that is too short");
  return {reinterpret_cast<const T*>(payload.data() + begin), count};
}

// Bytes of a vector that the result owns.
template <typename T>
Bytes bytes_of_values(std::vector<T> values) {
  const auto owner = std::make_shared<const std::vector<T>>(std::move(values));
  return {.data = std::as_bytes(std::span(*owner)), .owner = owner};
}

}  // namespace fleet::ps

// Updates the parameters of a rank elsewhere: on parameter servers (ps/).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace fleet {

class EventLine;
class Executor;

// The sums of the gradients of a table's rows over the steps of an unfinished update.
struct MergedRows {
  std::string table;
  std::vector<uint64_t> ids = {};     // none twice
  std::vector<float> shows = {};      // occurrences of each
  std::vector<float> clicks = {};     // likewise
  std::vector<float> gradients = {};  // [ids, dim]
};

// Replaces the optimizer of a rank. All ranks make the same calls in the same order,
// except where a mode lets them run apart. For use by the thread of the training loop. Errors:
// kPeerLost and kTimeout name the server or trainer.
class ParameterExchange {
 public:
  virtual ~ParameterExchange() = default;
  // Parameters and states have their initial values (or a checkpoint's) on rank 0: gives them to
  // the servers, and all ranks receive them. steps: training steps done so far.
  virtual void begin(Executor& executor, int64_t steps) = 0;
  // Instead of begin(), on a rank that takes the place of a lost one: receives the servers' values.
  // shares: what shares() of the lost rank was.
  struct TakenPlace {
    int64_t steps = 0;    // training steps of the lost rank that some server has
    int64_t missing = 0;  // the most of these that a server lacks: they are lost
    int64_t version = 0;  // steps of the slowest rank that the values include
  };
  virtual TakenPlace take_place(Executor& executor, uint64_t shares);
  // The number of begin() and synchronize() so far, except those of a rank that is apart().
  virtual uint64_t shares() const { return 0; }
  // Before begin(), if the values come from the checkpoint in this folder: loads its tables.
  virtual void resume_tables(const std::string& /*folder*/) {}
  // The bytes of a column of a batch by its name; empty: none.
  using Columns = std::function<std::span<const std::byte>(const std::string&)>;
  // Before a step on this batch, or its evaluation: feeds the rows of tables that it reads.
  virtual void feed_rows(Executor& /*executor*/, const Columns& /*columns*/, bool /*evaluation*/) {}
  // After a step that ends without an update (gradient_merge): keeps its gradients of rows for the
  // next one.
  virtual void merge_rows(Executor& /*executor*/) {}
  // For a checkpoint within such an update, and its resume: this rank's sums.
  virtual std::vector<MergedRows> merged_rows() const { return {}; }
  // NOLINTNEXTLINE(performance-unnecessary-value-param): implementations keep it
  virtual void restore_merged_rows(std::vector<MergedRows> /*rows*/) {}
  // After the gradients of step `step` have been computed, if the step ends with an update. Returns
  // when the next step may use the parameters.
  virtual void update(Executor& executor, int64_t step, double learning_rate) = 0;
  // Whether ranks do not wait for each other in update(): they make different numbers of steps in
  // the same time.
  virtual bool apart() const { return false; }
  // If ranks are apart(): while update() waits for slower ones, it calls this function about twice
  // a second; null: none.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): implementations keep it
  virtual void on_wait(std::function<void()> /*call*/) {}
  // The servers have all updates of this rank.
  virtual void settle(Executor& /*executor*/) {}
  // After settle(), if ranks are apart(): this one waits for all others now, so until its next
  // update none of them waits for it in update().
  virtual void meet() {}
  // Before an evaluation or a checkpoint: every update pushed so far is in the parameters of all
  // ranks. with_states: rank 0 receives the optimizer's states too; if ranks are apart(), it alone
  // makes this call.
  virtual void synchronize(Executor& executor, bool with_states) = 0;
  // For a checkpoint: fixes the content of the tables after the steps so far. All ranks call it;
  // then rank 0 calls save_tables() once, before the next cut.
  virtual void cut_tables() {}
  // Writes that content into the folder of the checkpoint, while training continues; "": drops it.
  // Returns the folder of another checkpoint that this one needs; "": none. From any thread. kIo.
  virtual std::string save_tables(const std::string& /*folder*/) { return ""; }
  // All ranks, between two steps, and not during save_tables(): ages the rows of tables by one, and
  // removes those of `age` and more, and others that the settings of tables name. False: there are
  // no tables.
  virtual bool shrink_tables(int64_t /*age*/) { return false; }
  // Before the first step after synchronize().
  virtual void resume(Executor& /*executor*/) {}
  // This rank has ended as planned.
  virtual void finish() = 0;
  // Adds what it measured per update since the previous call, for metrics.jsonl.
  virtual void add_to(EventLine* /*line*/) {}
  virtual std::string text() const = 0;  // "2 parameter servers, sync", for the log
};

inline ParameterExchange::TakenPlace ParameterExchange::take_place(Executor&, uint64_t) {
  throw Error(ErrorCode::kUnsupported, "no rank can take the place of a lost one", text());
}

}  // namespace fleet
